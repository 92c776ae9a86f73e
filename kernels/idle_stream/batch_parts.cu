// A short kernel, then batched calls of at most kPart pieces. Each part keeps the stream busy for
// the next.
#include <algorithm>

#include "primed.h"

constexpr int64_t kPart = 1000;

class Parts : public Method {
 public:
  explicit Parts(const Pieces& moved) : Method(moved) {
    for (int64_t first = 0; first < pieces.count; first += kPart) {
      parts_.emplace_back(pieces, first, std::min(kPart, pieces.count - first));
    }
  }

  void launch(cudaStream_t stream) override {
    prime(stream);
    for (BatchedCall& part : parts_) {
      part.enqueue(stream);
    }
  }

 private:
  std::vector<BatchedCall> parts_;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Parts>(pieces); }
