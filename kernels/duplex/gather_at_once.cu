// Both directions at once: the copy engines together, and a gather beside a copy to the host.
#include "list_gather.h"
#include "timed_call.h"

const Memory kMemory = Memory::kPinned;

constexpr int64_t kMaxBlocks = 1024;
constexpr int kTurnsOfEach = 7;

class Duplex : public ListGather {
 public:
  explicit Duplex(const Pieces& moved) : ListGather(moved, kMaxBlocks) {
    const auto bytes = static_cast<size_t>(pieces.bytes());
    check(cudaStreamCreateWithFlags(&back_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaHostAlloc(&landed_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    check(cudaMalloc(&source_, bytes), "cudaMalloc");
  }
  ~Duplex() override {
    cudaStreamDestroy(back_);
    cudaFreeHost(landed_);
    cudaFree(source_);
  }

  std::map<std::string, std::vector<double>> samples(cudaStream_t stream) override {
    const auto bytes = static_cast<size_t>(pieces.bytes());
    const auto in = [&] {
      check(cudaMemcpyAsync(pieces.device, pieces.host, bytes, cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
    };
    return {{"duplex_engines", gains(in, stream)},
            {"duplex_kernel", gains([&] { launch(stream); }, stream)}};
  }

 private:
  void out() const {
    check(cudaMemcpyAsync(landed_, source_, static_cast<size_t>(pieces.bytes()),
                          cudaMemcpyDeviceToHost, back_),
          "cudaMemcpyAsync");
  }

  // Time of both one after the other, over that of both at once.
  template <class In>
  std::vector<double> gains(const In& in, cudaStream_t stream) const {
    std::vector<double> found;
    for (int turn = 0; turn < kTurnsOfEach; ++turn) {
      const double alone = seconds_of(in, stream) + seconds_of([&] { out(); }, back_);
      const double together = seconds_of(
          [&] {
            in();
            out();
            check(cudaStreamSynchronize(back_), "cudaStreamSynchronize");
          },
          stream);
      if (turn > 0) {  // the first of each warms up
        found.push_back(alone / together);
      }
    }
    return found;
  }

  cudaStream_t back_ = nullptr;
  void* landed_ = nullptr;
  void* source_ = nullptr;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  if (!pieces.to_device) {
    throw std::invalid_argument("to_device: expected true, got false");
  }
  return std::make_unique<Duplex>(pieces);
}
