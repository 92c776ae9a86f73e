// Reproducible bytes: word i of a device's stream for a seed (splitmix64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// Word i of the stream; server and client compute the same one.
inline uint64_t pattern_word(uint64_t seed, uint64_t device, uint64_t i) {
  uint64_t z = seed + (device << 48) + (i + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// `bytes` is a multiple of 8; the stream starts at word `first`.
inline void write_pattern(uint8_t* data, size_t bytes, uint64_t seed, uint64_t device,
                          uint64_t first) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t word = pattern_word(seed, device, first + i);
    std::memcpy(data + i * 8, &word, 8);
  }
}

// Offset of the first byte that differs from the pattern, or `bytes`, which is a multiple of 8.
inline size_t first_difference(const uint8_t* data, size_t bytes, uint64_t seed, uint64_t device,
                               uint64_t first) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t word = pattern_word(seed, device, first + i);
    if (std::memcmp(data + i * 8, &word, 8) != 0) {
      size_t byte = i * 8;
      while (data[byte] == static_cast<uint8_t>(word >> (byte % 8 * 8))) {
        ++byte;
      }
      return byte;
    }
  }
  return bytes;
}
