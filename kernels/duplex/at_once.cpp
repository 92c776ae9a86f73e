// One copy in and one copy out, each on a stream.
#include "copies.h"

class AtOnce : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    const cudaStream_t side = side_.fork(stream);
    copy_in(pieces, stream);
    copy_out(pieces, side);
    side_.join(stream);
  }

 private:
  const SideStream side_;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  require_both_ways(pieces);
  return std::make_unique<AtOnce>(pieces);
}
