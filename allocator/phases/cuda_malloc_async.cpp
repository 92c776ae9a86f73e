// The driver's stream-ordered pool, configured to keep freed memory.
#include <cuda_runtime.h>

#include "../lib/driver_source.h"
#include "../lib/unbounded.h"

namespace {

class MallocAsync : public Allocator {
 public:
  MallocAsync() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    check(cudaGetDevice(&properties.location.id), "cudaGetDevice");
    check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    uint64_t keep = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "threshold");
  }

  ~MallocAsync() override {
    cudaDeviceSynchronize();
    cudaMemPoolDestroy(pool_);
  }

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    void* ptr = nullptr;
    const auto stream = reinterpret_cast<cudaStream_t>(place.stream);
    const cudaError_t status = cudaMallocFromPoolAsync(&ptr, bytes, pool_, stream);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw OutOfMemory("out of memory: the pool has no " + std::to_string(bytes) + " B");
    }
    check(status, "cudaMallocFromPoolAsync");
    return ptr;
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr != nullptr) {
      check(cudaFreeAsync(ptr, reinterpret_cast<cudaStream_t>(place.stream)), "cudaFreeAsync");
    }
  }

  // The pool has no such call: the caller lets its stream wait for the user before the free.
  void record_stream(void* /*ptr*/, Place /*place*/) override {}

  void trim(int /*device*/, size_t keep) override {
    check(cudaMemPoolTrimTo(pool_, keep), "cudaMemPoolTrimTo");
  }

  // The maximum size of a pool is set at its creation.
  void set_limit(int /*device*/, size_t /*bytes*/) override { refuse_limit(); }

  Statistics statistics(int /*device*/) override {
    Statistics all;
    all.active = attribute(cudaMemPoolAttrUsedMemCurrent);
    all.peak_active = attribute(cudaMemPoolAttrUsedMemHigh);
    all.reserved = attribute(cudaMemPoolAttrReservedMemCurrent);
    all.peak_reserved = attribute(cudaMemPoolAttrReservedMemHigh);
    return all;
  }

  void reset_statistics(int /*device*/) override {
    uint64_t zero = 0;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero), "used");
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &zero), "reserved");
  }

 private:
  size_t attribute(cudaMemPoolAttr which) const {
    uint64_t value = 0;
    check(cudaMemPoolGetAttribute(pool_, which, &value), "cudaMemPoolGetAttribute");
    return value;
  }

  cudaMemPool_t pool_{};
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& /*source*/) {
  return std::make_unique<MallocAsync>();
}
