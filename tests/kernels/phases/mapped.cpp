// Random actions over a source that maps pages, everything checked after each: allocator_mapped
//
// Ends with 0 where every allocation has exclusive, mapped memory, blocks tile what is
// mapped, and all of it goes back.
#include <cstdio>
#include <random>

#include "situations.h"

namespace {

void check_heap(Shadow& gpu) {
  size_t tiled = 0, used = 0;
  uintptr_t end = 0, segment = 0;
  for (const BlockInfo& block : gpu.allocator->snapshot(Shadow::kDevice)) {
    require(block.ptr == (block.segment != segment ? block.segment : end),
            "a block that begins where the one before it ends", "another");
    require(gpu.source.room_at(block.ptr) >= block.size, "a block with memory", "one without");
    segment = block.segment;
    end = block.ptr + block.size;
    tiled += block.size;
    used += block.state == BlockState::kUsed;
  }
  require(used == gpu.held().size(), "as many live blocks as allocations", std::to_string(used));
  require(tiled == gpu.reserved(), "all memory in blocks", mib(tiled));
}

// Memory for a batch that grows comes from where the last one was.
void grows_in_place(Shadow& gpu) {
  size_t most = 0;
  for (size_t size = 16; size < 32; ++size) {
    for (int i = 0; i < 8; ++i) {
      gpu.allocate(size * kMiB, 0);
    }
    while (!gpu.held().empty()) {
      gpu.free(gpu.held().begin());
    }
    most = 8 * size * kMiB;
  }
  require(gpu.reserved() == most, "as much as the largest step needs", mib(gpu.reserved()));
}

// The first pages are as many as a segment has, so that what is freed there can fit again.
void begins_with_a_segment(Shadow& gpu) {
  gpu.allocate(3 * kMiB, 0);
  require(gpu.reserved() == 20 * kMiB, "a first piece of 20 MiB", mib(gpu.reserved()));
  gpu.allocator->set_limit(Shadow::kDevice, 24 * kMiB);
  gpu.allocate(3 * kMiB, gpu.source.create_stream());
  require(gpu.reserved() == 24 * kMiB, "what there is room for", mib(gpu.reserved()));
}

// Free blocks between others are used before the end of the range, however well that fits.
void takes_the_end_last(Shadow& gpu) {
  const auto before = gpu.allocate(64 * kMiB, 0);
  const uintptr_t hole = before->start;
  gpu.allocate(2 * kMiB, 0);
  gpu.free(gpu.allocate(32 * kMiB, 0));
  gpu.free(before);
  require(gpu.allocate(32 * kMiB, 0)->start == hole, "the hole that fits", "the end");
}

void random_actions(unsigned seed) {
  Shadow gpu(512 * kMiB);
  const Stream owners[] = {0, gpu.source.create_stream(), gpu.source.create_stream()};
  const Stream user = gpu.source.create_stream();
  std::mt19937 random(seed);
  for (int i = 0; i < 600; ++i) {
    const unsigned action = random() % 16;
    if (action < 8) {
      const size_t bytes = 1 + random() % (size_t{1} << (10 + random() % 17));
      try {
        const auto made = gpu.allocate(bytes, owners[random() % 3]);
        require(gpu.source.room_at(made->start) >= bytes, "memory", "none");
      } catch (const OutOfMemory&) {
      }
    } else if (action < 14 && !gpu.held().empty()) {
      const auto one = std::next(gpu.held().begin(), long(random() % gpu.held().size()));
      if (action == 13) {
        gpu.use(one, user);
      }
      gpu.free(one);
    } else if (action == 14) {
      gpu.source.complete(user, 1 + random() % 3);
    } else {
      gpu.allocator->trim(Shadow::kDevice, size_t(random() % 256) << 20);
    }
    check_heap(gpu);
  }
  gpu.drain();
  require(gpu.source.range_count() <= 1, "no addresses of streams without memory", "some");
}

}  // namespace

int main() {
  try {
    for (const auto run : {begins_with_a_segment, grows_in_place, takes_the_end_last}) {
      Shadow gpu(8 * kGiB);
      run(gpu);
    }
    for (unsigned seed = 0; seed < 200; ++seed) {
      random_actions(seed);
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
