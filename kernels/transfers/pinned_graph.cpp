// The loop of copies as a graph, captured once: one call submits all copies.
#include "../common/moves/transfer.h"

class Graph : public Method {
 public:
  explicit Graph(const Pieces& moved) : Method(moved) {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    for (int64_t i = 0; i < pieces.count; ++i) {
      check(cudaMemcpyAsync(pieces.to(i), pieces.from(i), pieces.size, pieces.kind(), stream),
            "cudaMemcpyAsync");
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&copies_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }
  ~Graph() override { cudaGraphExecDestroy(copies_); }

  void launch(cudaStream_t stream) override {
    check(cudaGraphLaunch(copies_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t copies_ = nullptr;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Graph>(pieces); }
