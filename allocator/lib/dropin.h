// A drop-in allocator for a framework: the heaps of p4_final, made safe for streams that end, for
// graph captures and for a driver that refuses, with the observers that a variant names.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "device_memory.h"

namespace dropin {

// The allocator over all devices.
template <typename Mutex, typename... Observers>
class Dropin : public PooledAllocator {
 public:
  using OneDevice = Device<Mutex, Observers...>;

  explicit Dropin(MemorySource& source)
      : source_(source), streams_(dynamic_cast<StreamSource*>(&source)) {}

  ~Dropin() override {
    for (std::atomic<OneDevice*>& device : devices_) {
      delete device.load();
    }
  }

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    try {
      return at(place.device).allocate(bytes, identity(place.stream), place.stream);
    } catch (const OutOfMemory&) {
      if (!have_freed(place.device, bytes)) {
        throw;
      }
    }
    return at(place.device).allocate(bytes, identity(place.stream), place.stream);
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
    if (ptr != nullptr) {
      at(place.device).record_stream(ptr, identity(place.stream));
    }
  }

  void begin_capture(int device, PoolId pool, std::function<bool(Stream)> takes) override {
    at(device).begin_capture(pool, std::move(takes));
  }
  void end_capture(int device, PoolId pool) override { at(device).end_capture(pool); }
  void release_pool(int device, PoolId pool) override { at(device).release_pool(pool); }
  void keep_stream(Place place) override { at(place.device).keep_stream(identity(place.stream)); }
  void stream_ends(Place place) override { at(place.device).stream_ends(identity(place.stream)); }

  void on_out_of_memory(OutOfMemoryHook hook) override {
    const std::lock_guard<std::mutex> lock(making_);
    hooks_.push_back(std::move(hook));
  }

  void trim(int device, size_t keep) override { at(device).trim(keep); }
  void set_limit(int device, size_t bytes) override { at(device).set_limit(bytes); }
  uint64_t ticket(void* ptr, int device) override { return at(device).ticket(ptr); }
  Statistics statistics(int device) override { return at(device).statistics(); }
  std::vector<BlockInfo> snapshot(int device) override { return at(device).snapshot(); }
  void reset_statistics(int device) override { at(device).reset_statistics(); }

  // A copy of one observer of a device.
  template <typename Observer>
  Observer observer(int device) {
    return at(device).template observer<Observer>();
  }

 private:
  Stream identity(Stream stream) const {
    return streams_ != nullptr ? streams_->identity(stream) : stream;
  }

  bool have_freed(int device, size_t bytes) {
    std::vector<OutOfMemoryHook> hooks;
    {
      const std::lock_guard<std::mutex> lock(making_);
      hooks = hooks_;
    }
    return std::any_of(hooks.begin(), hooks.end(),
                       [&](const OutOfMemoryHook& hook) { return hook(device, bytes); });
  }

  OneDevice& at(int device) {
    if (device < 0 || device >= kMaxDevices) {
      throw std::invalid_argument("device: expected 0 to " + std::to_string(kMaxDevices - 1) +
                                  ", got " + std::to_string(device));
    }
    OneDevice* known = devices_[size_t(device)].load(std::memory_order_acquire);
    return known != nullptr ? *known : first_use(device);
  }

  OneDevice& first_use(int device) {
    const std::lock_guard<std::mutex> lock(making_);
    std::atomic<OneDevice*>& slot = devices_[size_t(device)];
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      slot.store(new OneDevice(source_, device), std::memory_order_release);
    }
    return *slot.load(std::memory_order_relaxed);
  }

  MemorySource& source_;
  StreamSource* const streams_;
  std::mutex making_;  // guards first_use and hooks_
  std::array<std::atomic<OneDevice*>, kMaxDevices> devices_{};
  std::vector<OutOfMemoryHook> hooks_;
};

}  // namespace dropin
