// Phase 3: from 1 MiB on, blocks are cut out of segments of 1 GiB and merged when freed.
//
// As in the write-up, smaller requests keep the buckets of phase 2, the best fit is found by a scan
// of all blocks, and a segment is never returned, not even when memory runs out.
#include <list>
#include <unordered_map>

#include "../lib/counted.h"

namespace {

constexpr size_t kMinBlock = size_t{1} << 20;
constexpr size_t kSegment = size_t{1} << 30;

struct Block {
  char* ptr;
  size_t size;
  bool is_free;
};
using Segment = std::list<Block>;  // sorted by address

class BlockPool : public CountedAllocator {
 public:
  using CountedAllocator::CountedAllocator;

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    return bytes < kMinBlock ? from_cache(cache_, bucket_size(bytes), place.device)
                             : from_segment(round_up(bytes, kAlignment), place);
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr == nullptr) {
      return;
    }
    if (const auto found = blocks_.find(ptr); found != blocks_.end()) {
      const auto [segment, block] = found->second;
      blocks_.erase(found);
      count_free(block->size);
      coalesce(*segment, block);
      return;
    }
    to_cache(cache_, ptr, place.device);
  }

 private:
  struct BlockPosition {
    Segment* segment;
    Segment::iterator block;
  };

  void* from_segment(size_t size, Place place) {
    BlockPosition best{nullptr, {}};
    for (Segment& segment : segments_) {
      for (auto block = segment.begin(); block != segment.end(); ++block) {
        const bool fits = block->is_free && block->size >= size;
        if (fits && (best.segment == nullptr || block->size < best.block->size)) {
          best = {&segment, block};
        }
      }
    }
    if (best.segment == nullptr) {
      const size_t bytes = std::max(size, kSegment);
      char* start = static_cast<char*>(from_driver(bytes, place.device));
      segments_.push_back({Block{start, bytes, true}});
      best = {&segments_.back(), segments_.back().begin()};
    }
    const auto block = best.block;
    if (block->size > size) {
      best.segment->insert(std::next(block), Block{block->ptr + size, block->size - size, true});
      block->size = size;
    }
    block->is_free = false;
    blocks_.emplace(block->ptr, best);
    count_allocation(size);
    return block->ptr;
  }

  static void coalesce(Segment& segment, Segment::iterator block) {
    block->is_free = true;
    if (const auto after = std::next(block); after != segment.end() && after->is_free) {
      block->size += after->size;
      segment.erase(after);
    }
    if (block != segment.begin() && std::prev(block)->is_free) {
      std::prev(block)->size += block->size;
      segment.erase(block);
    }
  }

  SizeCache cache_;
  std::list<Segment> segments_;
  std::unordered_map<void*, BlockPosition> blocks_;
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<BlockPool>(source);
}
