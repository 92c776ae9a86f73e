// One copy per piece of a list.
#include "places.h"

const Memory kMemory = Memory::kPinned;

class ListLoop : public ListMethod {
 public:
  using ListMethod::ListMethod;

  void launch(cudaStream_t stream) override {
    for (int64_t i = 0; i < pieces.count; ++i) {
      check(cudaMemcpyAsync(to_at(i), from_at(i), pieces.size, pieces.kind(), stream),
            "cudaMemcpyAsync");
    }
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<ListLoop>(pieces); }
