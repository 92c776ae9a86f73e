// Writes lines of memory back and drops them from the caches of all cores; counts a core's cycles.
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace {

constexpr size_t kLine = 64;

const char* line_of(const void* start) {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(start) / kLine * kLine);
}

#if defined(__x86_64__)
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
#endif

void flush(const char* start, size_t bytes) {
  const char* line = line_of(start);
  const char* const end = start + bytes;
#if defined(__x86_64__)
  static const bool is_unordered = has_clflushopt();
  if (is_unordered) {
    flush_unordered(line, end);
  } else {
    for (; line < end; line += kLine) {
      _mm_clflush(line);
    }
  }
#elif defined(__aarch64__)
  for (; line < end; line += kLine) {
    asm volatile("dc civac, %0" : : "r"(line) : "memory");
  }
#else
#error "no way of flushing a cache line is known for this processor"
#endif
}

void wait_for_flushes() {
#if defined(__x86_64__)
  _mm_mfence();
#else
  asm volatile("dsb sy" : : : "memory");
#endif
}

}  // namespace

// `count` pieces of `bytes`, piece i at base + indices[i] * stride.
extern "C" void flush_pieces(const char* base, const int64_t* indices, size_t count, size_t stride,
                             size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    flush(base + static_cast<size_t>(indices[i]) * stride, bytes);
  }
  wait_for_flushes();
}

// Blocks of 16 additions, each of which needs the result of the previous one: one cycle each on
// x86-64 and ARMv9 cores. Both operands are registers, because some cores fold constants away.
extern "C" uint64_t add_in_chain(size_t blocks) {
  uint64_t sum = blocks, step = blocks | 1;
  for (size_t i = 0; i < blocks; ++i) {
#if defined(__x86_64__)
    asm volatile(".rept 16\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(step) : "cc");
#else
    asm volatile(".rept 16\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(step));
#endif
  }
  return sum;
}
