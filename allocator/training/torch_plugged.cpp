// PyTorch's allocator, plugged into PyTorch as a pluggable allocator.
#include "out_of_memory.h"

#if __has_include(<c10/cuda/CUDACachingAllocator.h>)
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::CachingAllocator::StatType;

constexpr size_t kAll = static_cast<size_t>(StatType::AGGREGATE);

// Initialised when the module is loaded, before another allocator is plugged in.
caching::CUDAAllocator* const native = caching::get();

c10::DeviceIndex index(int device) { return static_cast<c10::DeviceIndex>(device); }
cudaStream_t handle(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
c10::cuda::MempoolId_t id(PoolId pool) { return {pool.first, pool.second}; }

class TorchPlugged : public PooledAllocator {
 public:
  TorchPlugged() { native->init(c10::cuda::device_count()); }

  // PyTorch has made place.device the current device.
  void* allocate(size_t bytes, Place place) override {
    return native->raw_alloc_with_stream(bytes, handle(place.stream));
  }
  void deallocate(void* ptr, Place /*place*/) override { native->raw_delete(ptr); }

  void record_stream(void* ptr, Place place) override {
    // recordStream takes only a DataPtr, as tensors hold it.
    const c10::Device device(c10::DeviceType::CUDA, index(place.device));
    c10::DataPtr held(ptr, ptr, native->raw_deleter(), device);
    native->recordStream(
        held, c10::cuda::getStreamFromExternal(handle(place.stream), index(place.device)));
    held.release_context();
  }

  void begin_capture(int device, PoolId pool, std::function<bool(Stream)> takes) override {
    native->beginAllocateToPool(index(device), id(pool), [takes](cudaStream_t stream) {
      return takes(reinterpret_cast<Stream>(stream));
    });
  }
  void end_capture(int device, PoolId pool) override {
    native->endAllocateToPool(index(device), id(pool));
  }
  void release_pool(int device, PoolId pool) override {
    native->releasePool(index(device), id(pool));
  }

  // PyTorch's allocator has no such calls.
  void keep_stream(Place /*place*/) override {}
  void stream_ends(Place /*place*/) override {}
  void on_out_of_memory(OutOfMemoryHook /*hook*/) override {}

  void trim(int /*device*/, size_t /*keep*/) override { native->emptyCache(); }

  void set_limit(int device, size_t bytes) override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    native->setMemoryFraction(double(std::min(bytes, total)) / double(total), index(device));
  }

  Statistics statistics(int device) override {
    const auto stats = native->getDeviceStats(index(device));
    Statistics all;
    all.peak_active = static_cast<size_t>(stats.allocated_bytes[kAll].peak);
    all.reserved = static_cast<size_t>(stats.reserved_bytes[kAll].current);
    all.peak_reserved = static_cast<size_t>(stats.reserved_bytes[kAll].peak);
    all.driver_calls = static_cast<uint64_t>(stats.num_device_alloc + stats.num_device_free);
    return all;
  }

  // Does not reset the count of driver calls.
  void reset_statistics(int device) override { native->resetPeakStats(index(device)); }
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  return std::make_unique<TorchPlugged>();
}

#else

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  throw std::runtime_error("torch_plugged: built without PyTorch's headers");
}

#endif
