// One copy per piece, for any kind of memory.
#include "../common/moves/transfer.h"

class Loop : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    for (int64_t i = 0; i < pieces.count; ++i) {
      check(cudaMemcpyAsync(pieces.to(i), pieces.from(i), pieces.size, pieces.kind(), stream),
            "cudaMemcpyAsync");
    }
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Loop>(pieces); }
