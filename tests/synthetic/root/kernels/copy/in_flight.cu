// A warp owns a row and loads all of it before the first store.
#include "operator.h"

void launch(const Copy& copy) { copy_rows<int4[4]>(copy, 32); }
