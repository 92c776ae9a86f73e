// How a step of the fifth phase is made over a source.
#pragma once

#include "dropin.h"

#ifdef OVER_CUDA
#include "cuda_streams.h"
#endif

namespace dropin {

#ifdef OVER_CUDA

struct Streams {
  CudaStreams streams;
};

// An allocator that knows the streams of the real driver.
template <typename Own>
class OverDriver : Streams, public Own {
 public:
  explicit OverDriver(DriverSource& driver) : Streams{CudaStreams(driver)}, Own(streams) {}
};

#endif

// A source knows streams by itself, or is the real driver, or knows none. What tests compile needs
// no CUDA.
template <typename Own>
std::unique_ptr<Allocator> make_over(MemorySource& source) {
#ifdef OVER_CUDA
  if (auto* driver = dynamic_cast<DriverSource*>(&source)) {
    return std::make_unique<OverDriver<Own>>(*driver);
  }
#endif
  return std::make_unique<Own>(source);
}

}  // namespace dropin
