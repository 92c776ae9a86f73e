// Pieces are distributed over the streams; all copies in are enqueued first, then all work, then
// all copies out.
#include "round_trip.h"

void Trip::enqueue() {
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
