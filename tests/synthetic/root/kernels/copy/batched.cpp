// An entry for each row; needs CUDA 12.8.
#include <cstring>

#include "operator.h"

void launch(const Copy& copy) { std::memcpy(copy.dst, copy.src, copy.rows * kRowBytes); }
