// Pieces are distributed over the streams; the three parts of a piece are enqueued together.
#include "round_trip.h"

void Trip::enqueue() {
  for (int64_t i = 0; i < pieces.count; ++i) {
    copy_in(i, stream_of(i));
    work_on(i, stream_of(i));
    copy_out(i, stream_of(i));
  }
}
