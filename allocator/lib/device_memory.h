// One device of the allocator in dropin.h: the implementation of each call, and the order in which
// sources of memory are tried.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "observers.h"
#include "private_pools.h"
#include "stream_waits.h"

namespace dropin {

// The memory of one device. Thread-safe.
template <typename Mutex, typename... Observers>
class Device {
 public:
  // Makes the heap of the default stream, so that its first request waits for the driver only.
  Device(MemorySource& source, int device) : memory_(source, device) { heap_of(0); }

  // `handle` is the caller's handle of the stream.
  void* allocate(size_t bytes, Stream stream, Stream handle) {
    const Lock lock(mutex_);
    if (bytes > kMaxRequest) {
      out_of_memory(bytes);
    }
    const size_t size = rounded(bytes);
    Heap& heap = memory_.captures == 0 ? heap_of(stream) : heap_in_capture(stream, handle);
    SegmentPool& segment_pool = heap.pool_for(size);
    HeapBlock* block = segment_pool.is_small ? heap.front.pop(size) : nullptr;
    if (block == nullptr && (block = segment_pool.take_from_used_segment(size)) == nullptr &&
        (block = find_room(segment_pool, size)) == nullptr) {
      out_of_memory(bytes);
    }
    void* ptr = counts_.allocated(block, bytes);
    notify([&](auto& observer) { observer.allocated(*block); });
    return ptr;
  }

  void deallocate(void* ptr, const uint64_t* ticket) {
    const Lock lock(mutex_);
    HeapBlock* block = used_block(ptr);
    if (ticket != nullptr && *ticket != block->ticket) {
      throw InvalidPointer("ticket: expected that of the live allocation, " +
                           std::to_string(block->ticket) + ", got " + std::to_string(*ticket));
    }
    counts_.freed(block);
    notify([&](auto& observer) { observer.freed(*block); });
    if (!block->users.empty()) {
      waits_.add(block);
    } else if (block->size <= kSmallRequest) {
      block->segment_pool->heap.front.push(block);
    } else {
      block->segment_pool->give(block);
    }
  }

  void record_stream(void* ptr, Stream stream) {
    const Lock lock(mutex_);
    HeapBlock* block = used_block(ptr);
    std::vector<Stream>& users = block->users;
    const bool is_known = stream == block->segment_pool->heap.stream ||
                          std::find(users.begin(), users.end(), stream) != users.end();
    if (!is_known) {
      users.push_back(stream);
    }
  }

  void keep_stream(Stream stream) {
    const Lock lock(mutex_);
    waits_.keep(stream);
  }

  void stream_ends(Stream stream) {
    const Lock lock(mutex_);
    refuse_in_capture("stream_ends");
    waits_.poll();
    waits_.forget(stream);
    MemorySource& source = memory_.arena.source;
    const Event event = source.record(memory_.arena.device, stream);
    source.wait(memory_.arena.device, event);
    source.recycle(memory_.arena.device, event);
  }

  // Waits for all pending blocks first. Rethrows the last error of the driver if it refused a
  // segment.
  void trim(size_t keep) {
    const Lock lock(mutex_);
    refuse_in_capture("trim");
    waits_.wait();
    memory_.refusal = nullptr;
    release(keep);
    if (memory_.refusal != nullptr) {
      std::rethrow_exception(std::exchange(memory_.refusal, nullptr));
    }
  }

  void begin_capture(PoolId pool, std::function<bool(Stream)> takes) {
    const Lock lock(mutex_);
    pools_.begin(pool, std::move(takes));
    memory_.captures = pools_.captures();
  }

  void end_capture(PoolId pool) {
    const Lock lock(mutex_);
    pools_.end(pool);
    memory_.captures = pools_.captures();
    waits_.record_events();
  }

  void release_pool(PoolId pool) {
    const Lock lock(mutex_);
    pools_.release(pool);
  }

  void set_limit(size_t bytes) {
    const Lock lock(mutex_);
    memory_.arena.limit = bytes;
  }

  uint64_t ticket(void* ptr) {
    const Lock lock(mutex_);
    return used_block(ptr)->ticket;
  }

  Statistics statistics() {
    const Lock lock(mutex_);
    return counts_.statistics(memory_.arena);
  }

  void reset_statistics() {
    const Lock lock(mutex_);
    memory_.arena.source.reset_counts(memory_.arena.device);
    counts_.reset();
  }

  std::vector<BlockInfo> snapshot() {
    const Lock lock(mutex_);
    return blocks();
  }

  // A copy of one observer.
  template <typename Observer>
  Observer observer() {
    const Lock lock(mutex_);
    return std::get<Observer>(observers_);
  }

 private:
  using Lock = std::lock_guard<Mutex>;
  using Heaps = std::unordered_map<Stream, Heap>;

  template <typename Call>
  void notify(Call call) {
    std::apply([&](auto&... observer) { (call(observer), ...); }, observers_);
  }

  Heap& heap_of(Stream stream) {
    Heap*& recent = recent_[(stream ^ (stream >> 6) ^ (stream >> 12)) % recent_.size()];
    if (recent == nullptr || recent->stream != stream) {
      recent = &shared_.try_emplace(stream, memory_, stream).first->second;
    }
    return *recent;
  }

  Heap& heap_in_capture(Stream stream, Stream handle) {
    Heaps& heaps = heaps_[pools_.pool_of(handle)];
    return heaps.try_emplace(stream, memory_, stream).first->second;
  }

  // Tries every other source of memory, the cheapest first; nullptr where all fail. An unused
  // segment is split only after cached and pending blocks were released, as in p4_final. Inside a
  // capture the driver accepts only requests for memory.
  HeapBlock* find_room(SegmentPool& segment_pool, size_t size) {
    if (memory_.captures == 0 && !waits_.is_empty()) {
      waits_.poll();
    }
    if (segment_pool.is_small) {
      segment_pool.heap.front.flush();
    }
    if (HeapBlock* block = take_or_grow(segment_pool, size);
        block != nullptr || memory_.captures > 0) {
      return block;
    }
    release(0, &segment_pool.heap);
    if (HeapBlock* block = grow(segment_pool, size)) {
      return block;
    }
    waits_.wait();
    if (HeapBlock* block = segment_pool.take(size)) {
      return block;
    }
    release(0, &segment_pool.heap);
    return grow(segment_pool, size);
  }

  HeapBlock* take_or_grow(SegmentPool& segment_pool, size_t size) {
    HeapBlock* block = segment_pool.take(size);
    if (block == nullptr && memory_.captures == 0 && waits_.wait_on_device(segment_pool, size)) {
      block = segment_pool.take(size);
    }
    return block != nullptr ? block : grow(segment_pool, size);
  }

  HeapBlock* grow(SegmentPool& segment_pool, size_t size) {
    const size_t before = memory_.arena.reserved();
    HeapBlock* block = segment_pool.grow(size);
    if (block != nullptr) {
      notify(
          [&](auto& observer) { observer.grown(segment_pool, memory_.arena.reserved() - before); });
    }
    return block;
  }

  // Returns free segments of all heaps, except those that a graph may still write. Drops the heaps
  // that have no segments left, except `kept`.
  void release(size_t keep, const Heap* kept = nullptr) {
    for (auto pool = heaps_.begin(); pool != heaps_.end();) {
      auto& [id, heaps] = *pool;
      for (auto entry = heaps.begin(); entry != heaps.end() && !pools_.is_held(id);) {
        Heap& heap = entry->second;
        heap.front.flush();
        for (SegmentPool* segment_pool : {&heap.small, &heap.large}) {
          segment_pool->release(keep, [&](size_t bytes) {
            notify([&](auto& observer) { observer.returned(*segment_pool, bytes); });
          });
        }
        entry = heap.is_empty() && &heap != kept ? heaps.erase(entry) : std::next(entry);
      }
      const bool is_unused = heaps.empty() && id != kNoPool;
      pool = is_unused ? heaps_.erase(pool) : std::next(pool);
    }
    recent_ = {};
  }

  HeapBlock* used_block(const void* ptr) {
    auto* block = static_cast<HeapBlock*>(memory_.arena.table.find(ptr));
    if (__builtin_expect(block != nullptr && block->state == BlockState::kUsed, 1)) {
      return block;
    }
    throw InvalidPointer("pointer: expected a live allocation of device " +
                         std::to_string(memory_.arena.device) + ", got " +
                         describe(reinterpret_cast<uintptr_t>(ptr)));
  }

  std::string describe(uintptr_t address) {
    for (const BlockInfo& block : blocks()) {
      if (address >= block.ptr && address < block.ptr + block.size) {
        return address == block.ptr               ? "one already freed"
               : block.state == BlockState::kUsed ? "one inside a live allocation"
                                                  : "one inside free memory";
      }
    }
    return "one this allocator did not hand out";
  }

  // All blocks, sorted by address.
  std::vector<BlockInfo> blocks() const {
    std::vector<BlockInfo> all;
    for (const auto& [pool, heaps] : heaps_) {
      for (const auto& [stream, heap] : heaps) {
        add_blocks(heap.small, all);
        add_blocks(heap.large, all);
      }
    }
    std::sort(all.begin(), all.end(),
              [](const BlockInfo& a, const BlockInfo& b) { return a.ptr < b.ptr; });
    return all;
  }

  static void add_blocks(const SegmentPool& segment_pool, std::vector<BlockInfo>& all) {
    for (const HeapBlock* first : segment_pool.segments()) {
      const uintptr_t segment = reinterpret_cast<uintptr_t>(first->ptr);
      for (const HeapBlock* block = first; block != nullptr; block = block->above()) {
        const bool is_used = block->state == BlockState::kUsed;
        all.push_back({segment, reinterpret_cast<uintptr_t>(block->ptr), block->size,
                       is_used ? block->requested : 0, block->state, segment_pool.heap.stream});
      }
    }
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    const Arena& arena = memory_.arena;
    const std::string limit =
        arena.limit == SIZE_MAX ? "" : ", limit " + std::to_string(arena.limit);
    throw OutOfMemory("out of memory on device " + std::to_string(arena.device) + ": asked for " +
                          std::to_string(bytes) + " B, active " + std::to_string(counts_.active) +
                          " B, reserved " + std::to_string(arena.reserved()) + " B" + limit,
                      blocks());
  }

  void refuse_in_capture(const std::string& call) const {
    if (memory_.captures > 0) {
      throw std::runtime_error(call + ": expected no capture under way, got " +
                               std::to_string(memory_.captures));
    }
  }

  Mutex mutex_;
  Memory memory_;
  AllocationCounts counts_;
  StreamWaits waits_{memory_};
  PrivatePools pools_;
  std::map<PoolId, Heaps> heaps_;
  Heaps& shared_ = heaps_[kNoPool];
  std::array<Heap*, 16> recent_{};  // a cache of shared_, to skip most look-ups
  std::tuple<Observers...> observers_;
};

}  // namespace dropin
