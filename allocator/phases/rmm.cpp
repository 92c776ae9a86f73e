// A memory resource of RAPIDS RMM, through its C++ interface; RESOURCE is one of those in `made`.
//
// Without RMM's headers the module still builds, and make_allocator throws.
#include "../lib/size_table.h"
#include "../lib/unbounded.h"

#if __has_include(<rmm/mr/arena_memory_resource.hpp>)
#include <cuda_runtime.h>

#include <algorithm>
#include <new>
#include <optional>
#include <rmm/cuda_device.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include "../lib/driver_source.h"

namespace {

constexpr size_t kRmmAlignment = rmm::CUDA_ALLOCATION_ALIGNMENT;
constexpr size_t kArenaBytes = size_t{16} << 30;
// Exponents of two of RMM's bins: those of its own benchmark, and all up to the same maximum.
constexpr int8_t kSmallestUsualBin = 18, kSmallestBin = 8, kLargestBin = 22;

// cudaMalloc and cudaFree, counted. Copies share the counts.
using Driver = rmm::mr::statistics_resource_adaptor;

namespace made {

// Half of the free memory at once, as RMM's Python interface does by default.
inline auto pool(const Driver& driver) {
  return rmm::mr::pool_memory_resource(driver, rmm::percent_of_free_device_memory(50));
}

inline auto pool_growing(const Driver& driver) { return rmm::mr::pool_memory_resource(driver, 0); }

inline auto arena(const Driver& driver) { return rmm::mr::arena_memory_resource(driver); }

inline auto arena_16gib(const Driver& driver) {
  return rmm::mr::arena_memory_resource(driver, kArenaBytes);
}

inline auto binning(const Driver& driver) {
  return rmm::mr::binning_memory_resource(pool_growing(driver), kSmallestUsualBin, kLargestBin);
}

inline auto binning_all(const Driver& driver) {
  return rmm::mr::binning_memory_resource(pool_growing(driver), kSmallestBin, kLargestBin);
}

// By default it keeps freed memory. CUDA's own pools return it at the next synchronisation.
inline auto async(const Driver& /*driver*/) { return rmm::mr::cuda_async_memory_resource(); }

inline auto async_released(const Driver& /*driver*/) {
  return rmm::mr::cuda_async_memory_resource(std::nullopt, /*release_threshold=*/0);
}

}  // namespace made

// Current and peak bytes, and calls, of the memory that a resource takes from cudaMalloc.
class Taken {
 public:
  explicit Taken(const Driver& driver) : driver_(driver) { driver_.push_counters(); }

  template <typename Resource>
  Statistics statistics(const Resource& /*resource*/) const {
    const auto bytes = driver_.get_bytes_counter(), calls = driver_.get_allocations_counter();
    Statistics all;
    all.reserved = static_cast<size_t>(before_ + bytes.value);
    all.peak_reserved = static_cast<size_t>(before_ + std::max<int64_t>(bytes.peak, 0));
    all.driver_calls = static_cast<uint64_t>(2 * calls.total - calls.value);
    return all;
  }

  // The pool of the driver counts its own memory, and no calls.
  Statistics statistics(const rmm::mr::cuda_async_memory_resource& resource) const {
    Statistics all;
    all.reserved = attribute(resource, cudaMemPoolAttrReservedMemCurrent);
    all.peak_reserved = attribute(resource, cudaMemPoolAttrReservedMemHigh);
    return all;
  }

  template <typename Resource>
  void reset(const Resource& /*resource*/) {
    driver_.pop_counters();
    before_ = driver_.get_bytes_counter().value;
    driver_.push_counters();
  }

  void reset(const rmm::mr::cuda_async_memory_resource& resource) {
    uint64_t zero = 0;
    check(cudaMemPoolSetAttribute(resource.pool_handle(), cudaMemPoolAttrReservedMemHigh, &zero),
          "cudaMemPoolSetAttribute");
  }

 private:
  static size_t attribute(const rmm::mr::cuda_async_memory_resource& resource,
                          cudaMemPoolAttr which) {
    uint64_t value = 0;
    check(cudaMemPoolGetAttribute(resource.pool_handle(), which, &value),
          "cudaMemPoolGetAttribute");
    return value;
  }

  Driver driver_;
  int64_t before_ = 0;  // bytes at the last reset
};

// A resource on the current device. For one thread, whose streams need no other stream's memory.
template <typename Resource>
class RmmAllocator : public Allocator {
 public:
  explicit RmmAllocator(Resource (*make)(const Driver&))
      : driver_(rmm::mr::cuda_memory_resource()), taken_(driver_), resource_(make(driver_)) {}

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    const size_t size = round_up(bytes, kRmmAlignment);
    void* ptr = nullptr;
    try {
      ptr = resource_.allocate(reinterpret_cast<cudaStream_t>(place.stream), size, kRmmAlignment);
    } catch (const std::bad_alloc& error) {
      throw OutOfMemory(error.what());
    }
    live_.put(ptr, size);
    active_ += size;
    peak_active_ = std::max(peak_active_, active_);
    return ptr;
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr == nullptr) {
      return;
    }
    const size_t size = live_.take(ptr);
    if (size == 0) {
      throw InvalidPointer("free: expected a live allocation, got an unknown or freed pointer");
    }
    active_ -= size;
    resource_.deallocate(reinterpret_cast<cudaStream_t>(place.stream), ptr, size, kRmmAlignment);
  }

  void set_limit(int /*device*/, size_t /*bytes*/) override { refuse_limit(); }

  Statistics statistics(int /*device*/) override {
    Statistics all = taken_.statistics(resource_);
    all.active = active_;
    all.peak_active = peak_active_;
    return all;
  }

  void reset_statistics(int /*device*/) override {
    taken_.reset(resource_);
    peak_active_ = active_;
  }

 private:
  Driver driver_;
  Taken taken_;
  Resource resource_;
  SizeTable live_;
  size_t active_ = 0, peak_active_ = 0;
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  return std::make_unique<RmmAllocator<decltype(made::RESOURCE(std::declval<Driver>()))>>(
      made::RESOURCE);
}

#else

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  throw std::runtime_error("rmm: built without RMM's headers");
}

#endif
