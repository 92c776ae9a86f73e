// One stream: each piece is copied in, processed and copied out before the next one starts.
#include "round_trip.h"

void Trip::enqueue() {
  for (int64_t i = 0; i < pieces.count; ++i) {
    copy_in(i, stream_of(0));
    work_on(i, stream_of(0));
    copy_out(i, stream_of(0));
  }
}
