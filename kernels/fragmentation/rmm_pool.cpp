// The pool of RAPIDS RMM, by its C++ interface: a block is cut out of the best fit among what
// cudaMalloc gave, and merged with its neighbours when it is freed.
//
// Compiled against RMM's headers where it is installed. Elsewhere the module still builds, and says
// so when it is used.
#include "../../allocator/counted.h"

#if __has_include(<rmm/mr/pool_memory_resource.hpp>)
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <exception>
#include <new>
#include <rmm/error.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/version_config.hpp>
#include <string>
#include <unordered_map>

static_assert(RMM_VERSION_MAJOR * 100 + RMM_VERSION_MINOR >= 2606, "expected RMM 26.06 or newer");

namespace {

constexpr size_t kAlignment = rmm::CUDA_ALLOCATION_ALIGNMENT;

// What rmm::mr::cuda_memory_resource is to a pool, with its calls and bytes counted by the source,
// of whose first device it is. Copies are the same resource.
class Upstream {
 public:
  explicit Upstream(MemorySource& source) : source_(&source) {}

  void* allocate_sync(size_t bytes, size_t /*alignment*/) {
    void* ptr = source_->allocate(kDevice, bytes);
    if (ptr == nullptr) {
      throw rmm::out_of_memory("the driver has no " + std::to_string(bytes) + " B");
    }
    return ptr;
  }

  // Without a limit, a pool gives memory back only when it goes, and whoever drops it cannot be
  // told of errors. The source frees what is left.
  void deallocate_sync(void* ptr, size_t /*bytes*/, size_t /*alignment*/) noexcept {
    try {
      source_->release(kDevice, ptr);
    } catch (const std::exception&) {
    }
  }

  void* allocate(cuda::stream_ref /*stream*/, size_t bytes, size_t alignment) {
    return allocate_sync(bytes, alignment);
  }

  void deallocate(cuda::stream_ref /*stream*/, void* ptr, size_t bytes, size_t alignment) noexcept {
    deallocate_sync(ptr, bytes, alignment);
  }

  bool operator==(const Upstream&) const = default;

  friend void get_property(const Upstream&, cuda::mr::device_accessible) noexcept {}

 private:
  static constexpr int kDevice = 0;

  MemorySource* source_;
};

// A pool that begins with nothing and has no limit. RMM's callers tell the size of what they free,
// so that of live allocations is kept here.
class RmmPool : public CountedAllocator {
 public:
  explicit RmmPool(MemorySource& source)
      : CountedAllocator(source), pool_(Upstream(source), /*initial_pool_size=*/0) {}

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    const size_t size = round_up(bytes, kAlignment);
    void* ptr = nullptr;
    try {
      ptr = pool_.allocate(reinterpret_cast<cudaStream_t>(place.stream), size, kAlignment);
    } catch (const std::bad_alloc& error) {
      throw OutOfMemory(error.what());
    }
    live_.emplace(ptr, size);
    count_allocation(size);
    return ptr;
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr == nullptr) {
      return;
    }
    const auto found = live_or_throw(live_, ptr);
    const size_t size = found->second;
    live_.erase(found);
    count_free(size);
    pool_.deallocate(reinterpret_cast<cudaStream_t>(place.stream), ptr, size, kAlignment);
  }

 private:
  rmm::mr::pool_memory_resource pool_;
  std::unordered_map<void*, size_t> live_;
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<RmmPool>(source);
}

#else

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  throw std::runtime_error("rmm_pool: built without RMM's headers");
}

#endif
