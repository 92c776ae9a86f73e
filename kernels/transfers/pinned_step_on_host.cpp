// The CPU takes the step: the data leaves the device for it and comes back after it.
#include "step.h"

const Memory kMemory = Memory::kPinned;

class OnHost : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    copy(pieces.on_host(0), pieces.on_device(0), cudaMemcpyDeviceToHost, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    step_on_host(pieces.on_host(0), pieces.size);
    copy(pieces.on_device(0), pieces.on_host(0), cudaMemcpyHostToDevice, stream);
  }

  std::map<std::string, std::vector<double>> samples(cudaStream_t /*stream*/) override {
    return {{"step_time", {step_on_host(pieces.on_host(0), pieces.size)}}};
  }

 private:
  void copy(uint8_t* to, const uint8_t* from, cudaMemcpyKind kind, cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, pieces.size, kind, stream), "cudaMemcpyAsync");
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<OnHost>(pieces); }
