// An entry for each row; needs CUDA 12.8.
#include <cstring>
#include <stdexcept>

#include "operator.h"

void launch(const Copy& copy) {
  if (copy.rows == 0) {
    throw std::runtime_error("needs CUDA 12.8");
  }
  std::memcpy(copy.dst, copy.src, copy.rows * kRowBytes);
}
