// Phase 4, complete: a heap per device and stream, reuse across streams delayed until it is safe,
// thread safety, limits, and every attempt before memory counts as exhausted.
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "../lib/allocation_counts.h"
#include "../lib/deferred_frees.h"
#include "../lib/exact_front.h"
#include "../lib/spin_lock.h"

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
  // Makes the heap of the default stream, so that its first request waits for the driver only.
  Device(MemorySource& source, int device) : arena_{source, device} { heap_of(0); }

  void* allocate(size_t bytes, Stream stream) {
    const Lock lock(lock_);
    if (bytes > kMaxRequest) {
      out_of_memory(arena_, counts_, bytes);
    }
    const size_t size = rounded(bytes);
    const bool is_small = size <= kSmallRequest;
    Heap& heap = heap_of(stream);
    Pool& pool = is_small ? heap.small : heap.large;
    Block* block = is_small ? heap.front.pop(size) : nullptr;
    if (block == nullptr && (block = pool.take_from_used_segment(size)) == nullptr &&
        (block = find_room(heap, pool, size)) == nullptr) {
      out_of_memory(arena_, counts_, bytes);
    }
    return counts_.allocated(block, bytes);
  }

  void deallocate(void* ptr, const uint64_t* ticket) {
    const Lock lock(lock_);
    Block* block = used_block(arena_, ptr);
    if (ticket != nullptr && *ticket != block->ticket) {
      throw InvalidPointer("ticket: expected that of the live allocation, " +
                           std::to_string(block->ticket) + ", got " + std::to_string(*ticket));
    }
    counts_.freed(block);
    if (!block->users.empty()) {
      deferred_.add(block);
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
    deferred_.seal();
    deferred_.poll_all();
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
    return counts_.statistics(arena_);
  }

  std::vector<BlockInfo> snapshot() {
    const Lock lock(lock_);
    return snapshot_of(arena_);
  }

  void reset_statistics() {
    const Lock lock(lock_);
    arena_.source.reset_counts(arena_.device);
    counts_.reset();
  }

 private:
  Heap& heap_of(Stream stream) {
    Heap*& recent = recent_[(stream ^ (stream >> 6) ^ (stream >> 12)) % recent_.size()];
    if (recent == nullptr || recent->stream != stream) {
      recent = &heaps_.try_emplace(stream, arena_, stream).first->second;
    }
    return *recent;
  }

  // Tries every other source of memory, the cheapest first; nullptr where all fail. An unused
  // segment is split only after cached and pending blocks were released: otherwise live blocks
  // would spread over more segments than they need, and the heap would grow now and then.
  Block* find_room(Heap& heap, Pool& pool, size_t size) {
    if (!deferred_.is_empty()) {
      deferred_.seal();
      deferred_.poll_all();
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
    deferred_.wait();
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
  AllocationCounts counts_;
  DeferredFrees deferred_{arena_};
  std::unordered_map<Stream, Heap> heaps_;
  std::array<Heap*, 16> recent_{};  // a cache of heaps_, to skip most look-ups
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
