// What situations of hostile.cpp share.
#pragma once

#include <string>

#include "shadow.h"

constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;
inline std::string mib(size_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

// An allocation on `owner` that `user` still reads when it is freed.
inline void free_while_read(Shadow& gpu, size_t bytes, Stream owner, Stream user) {
  const auto read = gpu.allocate(bytes, owner);
  gpu.use(read, user);
  gpu.free(read);
}

// Requests that nothing free can serve, until `count` of them are live.
inline void miss(Shadow& gpu, Stream stream, int count = 4) {
  for (int i = 0; i < count; ++i) {
    gpu.allocate(15 * kMiB, stream);
  }
}
