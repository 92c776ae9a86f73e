// Phase 4, first step: segregated fit in constant time over segments of PyTorch's sizes.
//
// Blocks are linked to their neighbours, so merging takes constant time, too. One stream, one
// thread.
#include "../lib/allocation_counts.h"

namespace {

class Tlsf : public Allocator {
 public:
  explicit Tlsf(MemorySource& source) : arena_{source, 0} {}

  void* allocate(size_t bytes, Place /*place*/) override {
    if (bytes == 0) {
      return nullptr;
    }
    if (bytes > kMaxRequest) {
      out_of_memory(arena_, counts_, bytes);
    }
    const size_t size = rounded(bytes);
    Pool& pool = size <= kSmallRequest ? small_ : large_;
    Block* block = pool.take(size);
    if (block == nullptr && (block = pool.grow(size)) == nullptr) {
      trim(0, 0);
      if ((block = pool.grow(size)) == nullptr) {
        out_of_memory(arena_, counts_, bytes);
      }
    }
    return counts_.allocated(block, bytes);
  }

  void deallocate(void* ptr, Place /*place*/) override {
    if (ptr == nullptr) {
      return;
    }
    Block* block = used_block(arena_, ptr);
    counts_.freed(block);
    block->pool->give(block);
  }

  void trim(int /*device*/, size_t keep) override {
    small_.release(keep);
    large_.release(keep);
  }

  void set_limit(int /*device*/, size_t bytes) override { arena_.limit = bytes; }
  Statistics statistics(int /*device*/) override { return counts_.statistics(arena_); }
  std::vector<BlockInfo> snapshot(int /*device*/) override { return snapshot_of(arena_); }

  void reset_statistics(int device) override {
    arena_.source.reset_counts(device);
    counts_.reset();
  }

 private:
  Arena arena_;
  AllocationCounts counts_;
  Pool small_{arena_, true};
  Pool large_{arena_, false};
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<Tlsf>(source);
}
