// The CPU performs the step: the data leaves the device before it and returns after it.
#include "step.h"

class OnHost : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override { step_on_host(pieces, stream); }

  Samples samples(cudaStream_t stream) override {
    return {{"step_time", {step_on_host(pieces, stream)}}};
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<OnHost>(pieces); }
