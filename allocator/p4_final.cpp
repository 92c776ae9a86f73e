// Phase 4, as it is meant to be used: a heap for each device and stream, reuse across streams held
// back until it is safe, threads, limits, and everything tried before memory counts as exhausted.
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "exact_front.h"
#include "spin_lock.h"
#include "tally.h"
#include "waiting_room.h"

namespace {

using Lock = std::lock_guard<SpinLock>;

struct Heap {
  Heap(Arena& arena, Stream stream)
      : stream(stream), small(arena, true, stream), large(arena, false, stream) {}

  const Stream stream;
  Pool small;
  Pool large;
  ExactFront front;
};

class Device {
 public:
  // The heap of the default stream is made here: its first request waits for the driver alone.
  Device(MemorySource& source, int device) : arena_{source, device} { heap_of(0); }

  void* allocate(size_t bytes, Stream stream) {
    const Lock lock(lock_);
    if (bytes > kMaxRequest) {
      out_of_memory(arena_, tally_, bytes);
    }
    const size_t size = rounded(bytes);
    const bool is_small = size <= kSmallRequest;
    Heap& heap = heap_of(stream);
    Pool& pool = is_small ? heap.small : heap.large;
    Block* block = is_small ? heap.front.pop(size) : nullptr;
    if (block == nullptr && (block = pool.take_part(size)) == nullptr &&
        (block = find_room(heap, pool, size)) == nullptr) {
      out_of_memory(arena_, tally_, bytes);
    }
    return tally_.allocated(block, bytes);
  }

  void deallocate(void* ptr, const uint64_t* ticket) {
    const Lock lock(lock_);
    Block* block = used_block(arena_, ptr);
    if (ticket != nullptr && *ticket != block->ticket) {
      throw InvalidPointer("ticket: expected that of the live allocation, " +
                           std::to_string(block->ticket) + ", got " + std::to_string(*ticket));
    }
    tally_.freed(block);
    if (!block->users.empty()) {
      waiting_.add(block);
    } else if (block->size <= kSmallRequest) {
      heap_of(block->pool->stream()).front.push(block);
    } else {
      block->pool->give(block);
    }
  }

  void record_stream(void* ptr, Stream stream) {
    const Lock lock(lock_);
    Block* block = used_block(arena_, ptr);
    std::vector<Stream>& users = block->users;
    const bool is_known = stream == block->pool->stream() ||
                          std::find(users.begin(), users.end(), stream) != users.end();
    if (!is_known) {
      users.push_back(stream);
    }
  }

  void trim(size_t keep) {
    const Lock lock(lock_);
    waiting_.seal();
    waiting_.poll_all();
    release(keep);
  }

  void set_limit(size_t bytes) {
    const Lock lock(lock_);
    arena_.limit = bytes;
  }

  uint64_t ticket(void* ptr) {
    const Lock lock(lock_);
    return used_block(arena_, ptr)->ticket;
  }

  Statistics statistics() {
    const Lock lock(lock_);
    return tally_.statistics(arena_);
  }

  std::vector<BlockInfo> snapshot() {
    const Lock lock(lock_);
    return snapshot_of(arena_);
  }

  void reset_statistics() {
    const Lock lock(lock_);
    arena_.source.reset_counts(arena_.device);
    tally_.reset();
  }

 private:
  Heap& heap_of(Stream stream) {
    Heap*& recent = recent_[(stream ^ (stream >> 6) ^ (stream >> 12)) % recent_.size()];
    if (recent == nullptr || recent->stream != stream) {
      recent = &heaps_.try_emplace(stream, arena_, stream).first->second;
    }
    return *recent;
  }

  // What is tried when no part of a segment fits, the cheapest first; nullptr where all of it
  // failed. A whole segment is broken up only after what is kept or waiting was let go of: else
  // what is live would spread over more segments than it needs, and the heap grow once in a while.
  Block* find_room(Heap& heap, Pool& pool, size_t size) {
    if (!waiting_.is_empty()) {
      waiting_.seal();
      waiting_.poll_all();
    }
    heap.front.flush();
    if (Block* block = pool.take(size)) {
      return block;
    }
    if (Block* block = pool.grow(size)) {
      return block;
    }
    release(0);
    if (Block* block = pool.grow(size)) {
      return block;
    }
    waiting_.wait();
    if (Block* block = pool.take(size)) {
      return block;
    }
    release(0);
    return pool.grow(size);
  }

  void release(size_t keep) {
    for (auto& [stream, heap] : heaps_) {
      heap.front.flush();
      heap.small.release(keep);
      heap.large.release(keep);
    }
  }

  SpinLock lock_;
  Arena arena_;
  Tally tally_;
  WaitingRoom waiting_{arena_};
  std::unordered_map<Stream, Heap> heaps_;
  std::array<Heap*, 16> recent_{};  // saves looking up the few streams in use
};

class Final : public Allocator {
 public:
  explicit Final(MemorySource& source) : source_(source) {}

  ~Final() override {
    for (std::atomic<Device*>& device : devices_) {
      delete device.load();
    }
  }

  void* allocate(size_t bytes, Place place) override {
    return bytes == 0 ? nullptr : at(place.device).allocate(bytes, place.stream);
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr != nullptr) {
      at(place.device).deallocate(ptr, nullptr);
    }
  }

  void deallocate_ticket(void* ptr, Place place, uint64_t ticket) override {
    at(place.device).deallocate(ptr, &ticket);
  }

  void record_stream(void* ptr, Place place) override {
    at(place.device).record_stream(ptr, place.stream);
  }

  void trim(int device, size_t keep) override { at(device).trim(keep); }
  void set_limit(int device, size_t bytes) override { at(device).set_limit(bytes); }
  uint64_t ticket(void* ptr, int device) override { return at(device).ticket(ptr); }
  Statistics statistics(int device) override { return at(device).statistics(); }
  std::vector<BlockInfo> snapshot(int device) override { return at(device).snapshot(); }
  void reset_statistics(int device) override { at(device).reset_statistics(); }

 private:
  Device& at(int device) {
    if (device < 0 || device >= kMaxDevices) {
      throw std::invalid_argument("device: expected 0 to " + std::to_string(kMaxDevices - 1) +
                                  ", got " + std::to_string(device));
    }
    Device* known = devices_[size_t(device)].load(std::memory_order_acquire);
    return known != nullptr ? *known : first_use(device);
  }

  Device& first_use(int device) {
    const Lock lock(making_);
    std::atomic<Device*>& slot = devices_[size_t(device)];
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      slot.store(new Device(source_, device), std::memory_order_release);
    }
    return *slot.load(std::memory_order_relaxed);
  }

  MemorySource& source_;
  SpinLock making_;
  std::array<std::atomic<Device*>, kMaxDevices> devices_{};
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<Final>(source);
}
