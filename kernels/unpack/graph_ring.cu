// The copy and the launch of the batch as one CUDA graph over a fixed ring of descriptors.
#include "batch.h"
#include "kernel.h"

namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct DestroyExec {
  void operator()(cudaGraphExec_t exec) const { cudaGraphExecDestroy(exec); }
};

class GraphRing : public Path {
 public:
  explicit GraphRing(const Receive& receive) : receive_(receive), batch_(receive) {
    const std::shared_ptr<CUstream_st> captured = new_stream();
    cudaStream_t stream = captured.get();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    batch_.copy(stream);
    enqueue<ByWidth>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
    cudaGraph_t made = nullptr;
    check(cudaStreamEndCapture(stream, &made), "cudaStreamEndCapture");
    const std::unique_ptr<CUgraph_st, DestroyGraph> graph(made);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0), "cudaGraphInstantiate");
    exec_.reset(exec);
    check(cudaGraphUpload(exec, stream), "cudaGraphUpload");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    batch_.gather();
    parts.book(kBatch);
    check(cudaGraphLaunch(exec_.get(), stream), "cudaGraphLaunch");
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  DescriptorBatch batch_;
  std::unique_ptr<CUgraphExec_st, DestroyExec> exec_;  // freed before what it copies
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<GraphRing>(receive);
}
