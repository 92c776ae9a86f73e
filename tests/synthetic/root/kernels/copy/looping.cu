// Warps that stay and take one row after the other.
#include "operator.h"

void launch(const Copy& copy) { copy_rows<int4[4]>(copy, 1024); }
