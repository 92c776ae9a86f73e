// One copy, timed by two events around it.
#include "../common/moves/events.h"
#include "../common/moves/transfer.h"

class Profiled : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    check(cudaMemcpyAsync(pieces.to(0), pieces.from(0), static_cast<size_t>(pieces.bytes()),
                          pieces.kind(), stream),
          "cudaMemcpyAsync");
  }

  // The copy before warms up: the driver's tracing may have run since the last one.
  Samples samples(cudaStream_t stream) override {
    launch(stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    start_.record(stream);
    launch(stream);
    stop_.record(stream);
    return {{"gpu_time", {stop_.since(start_)}}};
  }

 private:
  Event start_;
  Event stop_;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  if (pieces.count != 1) {
    throw std::invalid_argument("count: expected 1, got " + std::to_string(pieces.count));
  }
  return std::make_unique<Profiled>(pieces);
}
