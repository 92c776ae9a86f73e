// As everything per chunk, but completion is polled with a sleep of 50 ms between two looks.
#include <thread>

#include "kernel.h"

namespace {

constexpr std::chrono::milliseconds kSleep{50};

void poll(cudaStream_t stream) {
  cudaError_t status = cudaStreamQuery(stream);
  while (status == cudaErrorNotReady) {
    std::this_thread::sleep_for(kSleep);
    status = cudaStreamQuery(stream);
  }
  check(status, "cudaStreamQuery");
}

class PollWithSleep : public Path {
 public:
  explicit PollWithSleep(const Receive& receive) : receive_(receive) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t /*stream*/, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      cudaStream_t stream;
      check(cudaStreamCreate(&stream), "cudaStreamCreate");
      parts.book(kCreate);
      DescriptorBlock* copied;
      check(cudaMalloc(&copied, sizeof(DescriptorBlock)), "cudaMalloc");
      parts.book(kMalloc);
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(copied, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        parts.book(kCopy);
        enqueue<ByWidth>(receive_, copied->descriptors, block.count, block.bytes, stream);
        parts.book(kLaunch);
        poll(stream);
        parts.book(kWait);
      }
      check(cudaFree(copied), "cudaFree");
      parts.book(kFree);
      check(cudaStreamDestroy(stream), "cudaStreamDestroy");
      parts.book(kDestroy);
    }
  }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<PollWithSleep>(receive);
}
