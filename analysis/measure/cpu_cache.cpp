// Writes lines of memory back and drops them from the caches of all cores; counts a core's cycles.
#include <cpuid.h>
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr size_t kLine = 64;

// Unlike clflush, one need not wait for the one before.
bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

__attribute__((target("clflushopt"))) void flush_unordered(const char* line, const char* end) {
  for (; line < end; line += kLine) {
    _mm_clflushopt(const_cast<char*>(line));
  }
}

void flush(const char* start, size_t bytes) {
  static const bool is_unordered = has_clflushopt();
  const char* line = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(start) & -kLine);
  const char* const end = start + bytes;
  if (is_unordered) {
    flush_unordered(line, end);
    return;
  }
  for (; line < end; line += kLine) {
    _mm_clflush(line);
  }
}

}  // namespace

// `count` pieces of `bytes`, piece i at base + indices[i] * stride.
extern "C" void flush_pieces(const char* base, const int64_t* indices, size_t count, size_t stride,
                             size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    flush(base + static_cast<size_t>(indices[i]) * stride, bytes);
  }
  _mm_mfence();
}
