// Phase 1: freed memory is kept by its exact size, rounded to 512 B.
#include "../lib/cached.h"

namespace {

size_t size_of(size_t bytes) { return round_up(bytes, kAlignment); }

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<CachedAllocator>(source);
}
