// The operator every variant of this study implements.
#pragma once

#include <cstdint>

struct Copy {
  const uint8_t* src;
  uint8_t* dst;
  int64_t rows;
};

// Enqueues the copy of rows of ROW_BYTES. Each variant defines it.
void launch(const Copy& copy);

// Copies parts of a row of a type, every `step`-th.
template <class Part>
void copy_rows(const Copy& copy, int step);
