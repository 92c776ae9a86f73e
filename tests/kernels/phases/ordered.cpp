// Streams that wait for others on the device instead of on the host: allocator_ordered
//
// Ends with 0 where memory comes back as soon as it may, else with 1 and what was expected and what
// came.
#include <cstdio>

#include "situations.h"

namespace {

struct Streams {
  explicit Streams(Shadow& gpu)
      : owner(gpu.source.create_stream()), user(gpu.source.create_stream()) {}
  Stream owner, user;
};

// Nothing but what waits fits: it is taken, and the host waits for nobody.
void much_is_waited_for_on_the_device(Shadow& gpu) {
  const Streams streams(gpu);
  free_while_read(gpu, 64 * kMiB, streams.owner, streams.user);
  gpu.allocate(64 * kMiB, streams.owner);
  require(gpu.reserved() == 64 * kMiB, "64 MiB", mib(gpu.reserved()));
  require(gpu.source.counts(0).event_waits == 0, "a host that does not wait", "one that does");
  require(!gpu.source.is_idle(streams.owner), "an owner that waits", "an idle one");
}

// A thirtieth is little enough for the streams to go on side by side.
void little_is_not_waited_for(Shadow& gpu) {
  const Streams streams(gpu);
  gpu.allocate(512 * kMiB, streams.owner);
  free_while_read(gpu, 16 * kMiB, streams.owner, streams.user);
  gpu.allocate(16 * kMiB, streams.owner);
  require(gpu.reserved() == 544 * kMiB, "544 MiB", mib(gpu.reserved()));
  require(gpu.source.is_idle(streams.owner), "an idle owner", "one that waits");
}

// The stream waits for those that use what it gets, however much was freed before.
void the_right_point_is_waited_for(Shadow& gpu) {
  const Streams streams(gpu);
  free_while_read(gpu, 4 * kMiB, streams.owner, streams.user);
  free_while_read(gpu, 64 * kMiB, streams.owner, streams.user);
  gpu.allocate(64 * kMiB, streams.owner);
}

// It waits for no more than it must, and what was freed later is not there yet.
void later_points_are_not_waited_for(Shadow& gpu) {
  const Streams streams(gpu);
  const auto first = gpu.allocate(64 * kMiB, streams.owner);
  const auto second = gpu.allocate(64 * kMiB, streams.owner);
  for (const auto& read : {first, second}) {
    gpu.use(read, streams.user);
    gpu.free(read);
  }
  gpu.allocate(64 * kMiB, streams.owner);
  gpu.source.complete(streams.user, 1);
  gpu.source.complete(streams.owner, ~uint64_t{0});
  require(gpu.source.is_idle(streams.owner), "a wait for the first use", "one for both");
  gpu.allocate(64 * kMiB, streams.owner);
}

// A stream that has ended may still read, whatever another does that has its handle.
void a_handle_that_comes_back_is_another_stream(Shadow& gpu) {
  const Streams streams(gpu);
  free_while_read(gpu, 32 * kMiB, streams.owner, streams.user);
  gpu.source.destroy_stream(streams.user);
  free_while_read(gpu, 64 * kMiB, streams.owner, gpu.source.create_stream());
  gpu.allocate(64 * kMiB, streams.owner);
  gpu.allocate(32 * kMiB, streams.owner);
}

// A waiting stream gets memory of its heap only.
void others_keep_what_is_theirs(Shadow& gpu) {
  const Streams streams(gpu);
  const Stream other = gpu.source.create_stream();
  gpu.pooled->keep_stream({Shadow::kDevice, streams.user});  // one event for both
  free_while_read(gpu, 4 * kMiB, other, streams.user);
  free_while_read(gpu, 64 * kMiB, streams.owner, streams.user);
  gpu.allocate(64 * kMiB, streams.owner);
  gpu.allocate(4 * kMiB, other);
}

// What two streams use is not there when one of them is through.
void all_users_are_waited_for(Shadow& gpu) {
  const Streams streams(gpu);
  const auto read = gpu.allocate(64 * kMiB, streams.owner);
  gpu.use(read, streams.user);
  gpu.use(read, 0);
  gpu.free(read);
  gpu.source.complete(streams.user, 1);
  gpu.allocate(64 * kMiB, streams.owner);
}

// A graph that was not announced cannot wait for work outside of it.
void a_captured_stream_is_left_alone(Shadow& gpu) {
  const Streams streams(gpu);
  free_while_read(gpu, 64 * kMiB, streams.owner, streams.user);
  gpu.source.begin_capture(streams.owner, true);
  gpu.allocate(64 * kMiB, streams.owner);
  gpu.source.end_capture(streams.owner);
}

}  // namespace

int main() {
  try {
    for (const auto run :
         {much_is_waited_for_on_the_device, little_is_not_waited_for, the_right_point_is_waited_for,
          later_points_are_not_waited_for, a_handle_that_comes_back_is_another_stream,
          others_keep_what_is_theirs, all_users_are_waited_for, a_captured_stream_is_left_alone}) {
      Shadow gpu(kGiB);
      run(gpu);
      gpu.drain();
    }
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 1;
  }
  return 0;
}
