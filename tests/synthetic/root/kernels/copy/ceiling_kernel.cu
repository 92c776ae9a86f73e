// As many contiguous bytes.
#include "operator.h"

void launch(const Copy& copy) { copy_rows<int4>(copy, ROW_BYTES); }
