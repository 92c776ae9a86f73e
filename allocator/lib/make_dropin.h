// Makes an allocator of the fifth phase over a source.
#pragma once

#include "dropin.h"

#ifdef OVER_CUDA
#include "cuda_order.h"
#else
class CudaStreams;
class CudaMapping;
class CudaOrder;
#endif

namespace dropin {

#ifdef OVER_CUDA

template <typename Cuda>
struct SourceHolder {
  explicit SourceHolder(DriverSource& driver) : source(driver) {}
  Cuda source;
};

// An allocator over the CUDA driver, together with its source.
template <typename Base, typename Cuda>
class DriverBacked : SourceHolder<Cuda>, public Base {
 public:
  explicit DriverBacked(DriverSource& driver)
      : SourceHolder<Cuda>(driver), Base(SourceHolder<Cuda>::source) {}
};

#endif

// Wraps the CUDA driver in a `Cuda` source; uses any other source directly. Without OVER_CUDA,
// which tests leave undefined, no CUDA is needed.
template <typename Base, typename Cuda = CudaStreams>
std::unique_ptr<Allocator> make_dropin(MemorySource& source) {
#ifdef OVER_CUDA
  if (auto* driver = dynamic_cast<DriverSource*>(&source)) {
    return std::make_unique<DriverBacked<Base, Cuda>>(*driver);
  }
#endif
  return std::make_unique<Base>(source);
}

}  // namespace dropin
