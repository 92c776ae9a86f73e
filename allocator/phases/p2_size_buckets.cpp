// Phase 2: sizes up to 16 MiB are rounded to a power of two, so that more requests find a fit.
//
// As in the write-up, a block can be almost twice as large as its request, and larger sizes are
// still matched exactly.
#include "../lib/cached.h"

namespace {

constexpr size_t kMaxBucket = size_t{16} << 20;

size_t size_of(size_t bytes) {
  return bytes > kMaxBucket ? round_up(bytes, kAlignment) : bucket_size(bytes);
}

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<CachedAllocator>(source);
}
