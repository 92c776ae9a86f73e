// The operator every variant of this study implements.
#pragma once

#include <cstdint>

constexpr int kRowBytes = ROW_BYTES;
constexpr int kSlotBytes = SLOT_BYTES;

struct Copy {
  const uint8_t* src;
  uint8_t* dst;
  int64_t rows;
};

// Enqueues the copy. Each variant defines it.
void launch(const Copy& copy);
