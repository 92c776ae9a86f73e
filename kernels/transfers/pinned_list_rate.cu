// A gather of a list's pieces, timed in turns with one contiguous copy of as many bytes.
#include "list_gather.h"
#include "timed_call.h"

const Memory kMemory = Memory::kPinned;

constexpr int64_t kMaxBlocks = 1024;
constexpr int kPairs = 7;

class Rate : public ListGather {
 public:
  explicit Rate(const Pieces& moved) : ListGather(moved, kMaxBlocks) {}

  std::map<std::string, std::vector<double>> samples(cudaStream_t stream) override {
    uint8_t* from = pieces.to_device ? pieces.host : pieces.device;
    uint8_t* to = pieces.to_device ? pieces.device : pieces.host;
    const auto contiguous = [&] {
      check(cudaMemcpyAsync(to, from, static_cast<size_t>(pieces.bytes()), pieces.kind(), stream),
            "cudaMemcpyAsync");
    };
    std::vector<double> shares;
    for (int pair = 0; pair < kPairs; ++pair) {
      const double copied = seconds_of(contiguous, stream);
      const double gathered = seconds_of([&] { launch(stream); }, stream);
      if (pair > 0) {  // the first of each warms up
        shares.push_back(copied / gathered);
      }
    }
    return {{"contiguous_share", shares}};
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Rate>(pieces); }
