// Batched calls of at most kPart pieces: only the first finds an idle stream.
#include "list_batch.h"

const Memory kMemory = Memory::kPinned;

constexpr size_t kPart = 1000;

class Parts : public ListBatch {
 public:
  using ListBatch::ListBatch;

  void launch(cudaStream_t stream) override {
    const auto count = static_cast<size_t>(pieces.count);
    for (size_t first = 0; first < count; first += kPart) {
      copy(first, std::min(kPart, count - first), stream);
    }
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Parts>(pieces); }
