// The pool of RAPIDS RMM, through its C++ interface: a request is cut from the best-fitting free
// block of the memory from cudaMalloc, and a freed block is merged with its neighbours.
//
// Without RMM's headers the module still builds, and make_allocator throws.
#include "../lib/counted.h"

#if __has_include(<rmm/mr/pool_memory_resource.hpp>)
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <exception>
#include <new>
#include <rmm/error.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/version_config.hpp>
#include <string>

static_assert(RMM_VERSION_MAJOR * 100 + RMM_VERSION_MINOR >= 2606, "expected RMM 26.06 or newer");

namespace {

constexpr size_t kRmmAlignment = rmm::CUDA_ALLOCATION_ALIGNMENT;

// The upstream resource of the pool, like rmm::mr::cuda_memory_resource, on the first device of a
// source that counts calls and bytes. Copies are the same resource.
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

  // A pool without a limit releases memory only in its destructor, which cannot report errors. The
  // source frees the rest.
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

// A pool that starts empty and has no limit. RMM needs the size with each free, which the base
// class stores.
class RmmPool : public CountedAllocator {
 public:
  explicit RmmPool(MemorySource& source)
      : CountedAllocator(source), pool_(Upstream(source), /*initial_pool_size=*/0) {}

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    const size_t size = round_up(bytes, kRmmAlignment);
    void* ptr = nullptr;
    try {
      ptr = pool_.allocate(reinterpret_cast<cudaStream_t>(place.stream), size, kRmmAlignment);
    } catch (const std::bad_alloc& error) {
      throw OutOfMemory(error.what());
    }
    return add_live(ptr, size);
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr != nullptr) {
      const size_t size = remove_live(ptr);
      pool_.deallocate(reinterpret_cast<cudaStream_t>(place.stream), ptr, size, kRmmAlignment);
    }
  }

 private:
  rmm::mr::pool_memory_resource pool_;
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
