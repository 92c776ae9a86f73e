// The copy and the launch of the batch as one CUDA graph over a fixed ring of descriptors.
#include "batch.h"
#include "kernel.h"

namespace {

class GraphRing : public Path {
 public:
  explicit GraphRing(const Receive& receive)
      : receive_(receive),
        gathered_(pinned_descriptors(receive.descriptors)),
        copied_(device_descriptors(receive.descriptors)) {
    const uint32_t count = receive.descriptors;
    cudaStream_t captured;
    check(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal), "capture");
    check(cudaMemcpyAsync(copied_, gathered_, count * sizeof(Descriptor), cudaMemcpyHostToDevice,
                          captured),
          "cudaMemcpyAsync");
    enqueue<ByWidth>(receive_, copied_, count, receive_.bytes, captured);
    cudaGraph_t graph;
    check(cudaStreamEndCapture(captured, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphUpload(exec_, captured), "cudaGraphUpload");
    check(cudaStreamSynchronize(captured), "cudaStreamSynchronize");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    check(cudaStreamDestroy(captured), "cudaStreamDestroy");
  }

  ~GraphRing() override {
    cudaGraphExecDestroy(exec_);
    cudaFreeHost(gathered_);
    cudaFree(copied_);
  }

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    gather_descriptors(receive_, gathered_);
    parts.book(kBatch);
    check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch");
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  Descriptor* gathered_;
  Descriptor* copied_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<GraphRing>(receive);
}
