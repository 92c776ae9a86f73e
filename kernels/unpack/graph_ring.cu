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
    const std::shared_ptr<CUstream_st> capture_stream = new_stream();
    cudaStream_t stream = capture_stream.get();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    batch_.copy(stream);
    enqueue<WidestAccess>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
    cudaGraph_t captured_graph = nullptr;
    check(cudaStreamEndCapture(stream, &captured_graph), "cudaStreamEndCapture");
    const std::unique_ptr<CUgraph_st, DestroyGraph> graph(captured_graph);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0), "cudaGraphInstantiate");
    exec_.reset(exec);
    check(cudaGraphUpload(exec, stream), "cudaGraphUpload");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, PartTimer& timer) override {
    batch_.gather();
    timer.lap(kBatch);
    check(cudaGraphLaunch(exec_.get(), stream), "cudaGraphLaunch");
    timer.lap(kLaunch);
  }

 private:
  const Receive& receive_;
  DescriptorBatch batch_;
  std::unique_ptr<CUgraphExec_st, DestroyExec> exec_;  // destroyed before the memory that it uses
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<GraphRing>(receive);
}
