// One device of the allocator in dropin.h: what each call does, and in which order room is looked
// for.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "duties.h"
#include "private_pools.h"
#include "stream_waits.h"

namespace dropin {

// One device. All calls may be made by several threads.
template <typename Mutex, typename... Duties>
class Device {
 public:
  // The heap of the default stream is made here: its first request waits for the driver alone.
  Device(MemorySource& source, int device) : memory_(source, device) { heap_of(0); }

  // `handle` is what the caller calls the stream.
  void* allocate(size_t bytes, Stream stream, Stream handle) {
    const Lock lock(mutex_);
    if (bytes > kMaxRequest) {
      out_of_memory(bytes);
    }
    const size_t size = rounded(bytes);
    Heap& heap = memory_.captures == 0 ? heap_of(stream) : heap_in_capture(stream, handle);
    Side& side = heap.side_for(size);
    HeapBlock* block = side.is_small ? heap.front.pop(size) : nullptr;
    if (block == nullptr && (block = side.take_part(size)) == nullptr &&
        (block = find_room(side, size)) == nullptr) {
      out_of_memory(bytes);
    }
    void* ptr = tally_.allocated(block, bytes);
    tell([&](auto& duty) { duty.allocated(*block); });
    return ptr;
  }

  void deallocate(void* ptr, const uint64_t* ticket) {
    const Lock lock(mutex_);
    HeapBlock* block = used_block(ptr);
    if (ticket != nullptr && *ticket != block->ticket) {
      throw InvalidPointer("ticket: expected that of the live allocation, " +
                           std::to_string(block->ticket) + ", got " + std::to_string(*ticket));
    }
    tally_.freed(block);
    tell([&](auto& duty) { duty.freed(*block); });
    if (!block->users.empty()) {
      waits_.add(block);
    } else if (block->size <= kSmallRequest) {
      block->side->heap.front.push(block);
    } else {
      block->side->give(block);
    }
  }

  void record_stream(void* ptr, Stream stream) {
    const Lock lock(mutex_);
    HeapBlock* block = used_block(ptr);
    std::vector<Stream>& users = block->users;
    const bool is_known = stream == block->side->heap.stream ||
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

  // Waits first. Rethrows what the driver said last where it has refused to take something.
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
    waits_.seal();
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
    return tally_.statistics(memory_.arena);
  }

  void reset_statistics() {
    const Lock lock(mutex_);
    memory_.arena.source.reset_counts(memory_.arena.device);
    tally_.reset();
  }

  std::vector<BlockInfo> snapshot() {
    const Lock lock(mutex_);
    return blocks();
  }

  // A copy of what the duty knows.
  template <typename Duty>
  Duty duty() {
    const Lock lock(mutex_);
    return std::get<Duty>(duties_);
  }

 private:
  using Lock = std::lock_guard<Mutex>;
  using Heaps = std::unordered_map<Stream, Heap>;

  template <typename Tell>
  void tell(Tell tell) {
    std::apply([&](auto&... duty) { (tell(duty), ...); }, duties_);
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

  // What is tried when no part of a segment fits, the cheapest first; nullptr where all of it
  // failed. A whole segment is broken up only after what is kept or waiting was let go of, as in
  // p4_final. Inside a capture the driver can only be asked for memory.
  HeapBlock* find_room(Side& side, size_t size) {
    if (memory_.captures == 0 && !waits_.is_empty()) {
      waits_.poll();
    }
    if (side.is_small) {
      side.heap.front.flush();
    }
    if (HeapBlock* block = take_or_grow(side, size); block != nullptr || memory_.captures > 0) {
      return block;
    }
    release(0, &side.heap);
    if (HeapBlock* block = grow(side, size)) {
      return block;
    }
    waits_.wait();
    if (HeapBlock* block = side.take(size)) {
      return block;
    }
    release(0, &side.heap);
    return grow(side, size);
  }

  HeapBlock* take_or_grow(Side& side, size_t size) {
    HeapBlock* block = side.take(size);
    if (block == nullptr && memory_.captures == 0 && waits_.order(side, size)) {
      block = side.take(size);
    }
    return block != nullptr ? block : grow(side, size);
  }

  HeapBlock* grow(Side& side, size_t size) {
    const size_t before = memory_.arena.reserved();
    HeapBlock* block = side.grow(size);
    if (block != nullptr) {
      tell([&](auto& duty) { duty.grown(side, memory_.arena.reserved() - before); });
    }
    return block;
  }

  // Returns segments of all heaps but those that a graph may still write, and drops the heaps that
  // have none then, but for `kept`.
  void release(size_t keep, const Heap* kept = nullptr) {
    for (auto pool = heaps_.begin(); pool != heaps_.end();) {
      auto& [id, heaps] = *pool;
      for (auto own = heaps.begin(); own != heaps.end() && !pools_.is_held(id);) {
        Heap& heap = own->second;
        heap.front.flush();
        for (Side* side : {&heap.small, &heap.large}) {
          side->release(
              keep, [&](size_t bytes) { tell([&](auto& duty) { duty.returned(*side, bytes); }); });
        }
        own = heap.is_empty() && &heap != kept ? heaps.erase(own) : std::next(own);
      }
      const bool is_gone = heaps.empty() && id != kNoPool;
      pool = is_gone ? heaps_.erase(pool) : std::next(pool);
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
                         what_is(reinterpret_cast<uintptr_t>(ptr)));
  }

  std::string what_is(uintptr_t address) {
    for (const BlockInfo& block : blocks()) {
      if (address >= block.ptr && address < block.ptr + block.size) {
        return address == block.ptr               ? "one already freed"
               : block.state == BlockState::kUsed ? "one inside a live allocation"
                                                  : "one inside free memory";
      }
    }
    return "one this allocator did not hand out";
  }

  // Every block by its address.
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

  static void add_blocks(const Side& side, std::vector<BlockInfo>& all) {
    for (const HeapBlock* first : side.segments()) {
      const uintptr_t segment = reinterpret_cast<uintptr_t>(first->ptr);
      for (const HeapBlock* block = first; block != nullptr; block = block->above()) {
        const bool is_used = block->state == BlockState::kUsed;
        all.push_back({segment, reinterpret_cast<uintptr_t>(block->ptr), block->size,
                       is_used ? block->requested : 0, block->state, side.heap.stream});
      }
    }
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    const Arena& arena = memory_.arena;
    const std::string limit =
        arena.limit == SIZE_MAX ? "" : ", limit " + std::to_string(arena.limit);
    throw OutOfMemory("out of memory on device " + std::to_string(arena.device) + ": asked for " +
                          std::to_string(bytes) + " B, active " + std::to_string(tally_.active) +
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
  Tally tally_;
  StreamWaits waits_{memory_};
  PrivatePools pools_;
  std::map<PoolId, Heaps> heaps_;
  Heaps& shared_ = heaps_[kNoPool];
  std::array<Heap*, 16> recent_{};  // of those shared: saves looking up the few streams in use
  std::tuple<Duties...> duties_;
};

}  // namespace dropin
