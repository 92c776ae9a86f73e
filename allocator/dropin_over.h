// How a step of the fifth phase is made over a source.
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
struct Held {
  explicit Held(DriverSource& driver) : source(driver) {}
  Cuda source;
};

// An allocator that gets more than memory from the real driver.
template <typename Own, typename Cuda>
class OverDriver : Held<Cuda>, public Own {
 public:
  explicit OverDriver(DriverSource& driver) : Held<Cuda>(driver), Own(Held<Cuda>::source) {}
};

#endif

// A source that is the real driver is asked as Cuda asks it; all others offer what they do. What
// tests compile needs no CUDA.
template <typename Own, typename Cuda = CudaStreams>
std::unique_ptr<Allocator> make_over(MemorySource& source) {
#ifdef OVER_CUDA
  if (auto* driver = dynamic_cast<DriverSource*>(&source)) {
    return std::make_unique<OverDriver<Own, Cuda>>(*driver);
  }
#endif
  return std::make_unique<Own>(source);
}

}  // namespace dropin
