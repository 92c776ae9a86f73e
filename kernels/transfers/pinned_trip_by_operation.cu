// Pieces are distributed over the streams; all copies in are enqueued first, then all work, then
// all copies out.
#include "round_trip.h"

const Memory kMemory = Memory::kPinned;

class ByOperation : public RoundTrip {
 public:
  using RoundTrip::RoundTrip;

 protected:
  void enqueue() override {
    for (int64_t i = 0; i < pieces.count; ++i) {
      copy_in(i, stream_of(i));
    }
    for (int64_t i = 0; i < pieces.count; ++i) {
      work_on(i, stream_of(i));
    }
    for (int64_t i = 0; i < pieces.count; ++i) {
      copy_out(i, stream_of(i));
    }
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ByOperation>(pieces);
}
