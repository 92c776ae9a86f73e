// One pitched copy of all pieces, which must have equal length and equal spacing.
#include "../common/moves/transfer.h"

class Pitched : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    const int64_t to_pitch = pieces.to_device ? pieces.size : pieces.pitch;
    const int64_t from_pitch = pieces.to_device ? pieces.pitch : pieces.size;
    check(cudaMemcpy2DAsync(pieces.to(0), to_pitch, pieces.from(0), from_pitch, pieces.size,
                            pieces.count, pieces.kind(), stream),
          "cudaMemcpy2DAsync");
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Pitched>(pieces); }
