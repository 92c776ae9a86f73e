// One copy of as many contiguous bytes.
#include <cstring>

#include "operator.h"

void launch(const Copy& copy) { std::memcpy(copy.dst, copy.src, copy.rows * kRowBytes); }
