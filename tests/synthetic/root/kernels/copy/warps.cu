// A warp owns a row.
#include "operator.h"

void launch(const Copy& copy) { copy_rows<int4>(copy, 32); }
