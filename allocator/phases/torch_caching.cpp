// PyTorch's allocator, through its C++ interface.
//
// Without PyTorch's headers the module still builds, and make_allocator throws.
#include "../lib/allocator.h"

#if __has_include(<c10/cuda/CUDACachingAllocator.h>)
#include <c10/cuda/CUDACachingAllocator.h>

#include <unordered_map>

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::CachingAllocator::StatType;

constexpr size_t kAll = static_cast<size_t>(StatType::AGGREGATE);

class TorchCaching : public Allocator {
 public:
  // Empties the cache, since PyTorch has one allocator for the process.
  TorchCaching() { caching::emptyCache(); }
  ~TorchCaching() override { caching::emptyCache(); }

  // raw_alloc looks up the thread's current device and stream, so the current device must be
  // place.device.
  void* allocate(size_t bytes, Place place) override {
    if (place.stream == 0) {
      return caching::raw_alloc(bytes);
    }
    return caching::raw_alloc_with_stream(bytes, reinterpret_cast<cudaStream_t>(place.stream));
  }

  void deallocate(void* ptr, Place /*place*/) override { caching::raw_delete(ptr); }

  void record_stream(void* ptr, Place place) override {
    // recordStream takes only a DataPtr, as tensors hold it.
    c10::DataPtr held(ptr, ptr, caching::get()->raw_deleter(), device(place.device));
    caching::recordStream(
        held, c10::cuda::getStreamFromExternal(reinterpret_cast<cudaStream_t>(place.stream),
                                               static_cast<c10::DeviceIndex>(place.device)));
    held.release_context();
  }

  void trim(int /*device*/, size_t /*keep*/) override { caching::emptyCache(); }

  Statistics statistics(int device) override {
    const auto stats = caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    Statistics all;
    all.requested = static_cast<size_t>(stats.requested_bytes[kAll].current);
    all.active = static_cast<size_t>(stats.allocated_bytes[kAll].current);
    all.peak_active = static_cast<size_t>(stats.allocated_bytes[kAll].peak);
    all.reserved = static_cast<size_t>(stats.reserved_bytes[kAll].current);
    all.peak_reserved = static_cast<size_t>(stats.reserved_bytes[kAll].peak);
    all.driver_calls = calls(stats) - calls_before_;
    all.allocations = static_cast<uint64_t>(stats.allocation[kAll].allocated) - allocated_before_;
    all.frees = static_cast<uint64_t>(stats.allocation[kAll].freed) - freed_before_;
    return all;
  }

  void reset_statistics(int device) override {
    caching::resetPeakStats(static_cast<c10::DeviceIndex>(device));
    const auto stats = caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    calls_before_ = calls(stats);
    allocated_before_ = static_cast<uint64_t>(stats.allocation[kAll].allocated);
    freed_before_ = static_cast<uint64_t>(stats.allocation[kAll].freed);
  }

 private:
  static c10::Device device(int index) {
    return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
  }

  static uint64_t calls(const c10::CachingDeviceAllocator::DeviceStats& stats) {
    return static_cast<uint64_t>(stats.num_device_alloc + stats.num_device_free);
  }

  uint64_t calls_before_ = 0;
  uint64_t allocated_before_ = 0;
  uint64_t freed_before_ = 0;
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  return std::make_unique<TorchCaching>();
}

#else

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  throw std::runtime_error("torch_caching: built without PyTorch's headers");
}

#endif
