// Pieces take turns on the streams, each piece's three parts enqueued together.
#include "round_trip.h"

const Memory kMemory = Memory::kPinned;

class DepthFirst : public RoundTrip {
 public:
  using RoundTrip::RoundTrip;

 protected:
  void enqueue() override {
    for (int64_t i = 0; i < pieces.count; ++i) {
      copy_in(i, stream_of(i));
      work_on(i, stream_of(i));
      copy_out(i, stream_of(i));
    }
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<DepthFirst>(pieces);
}
