// An allocator among streams and a driver at their worst: allocator_hostile SITUATION
//
// Ends with 0 where the allocator does what it must, else with 1 and what was expected and what
// came. Without an argument it lists the situations.
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "captures.h"

// Host memory in use, and basic blocks of the program run by this thread so far, which the compiler
// counts (-fsanitize-coverage=trace-pc).
namespace {
std::atomic<size_t> host_bytes{0};
volatile thread_local uint64_t steps = 0;
}  // namespace

extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {
  steps = steps + 1;
}

void* operator new(size_t bytes) {
  void* ptr = std::malloc(bytes);
  if (ptr == nullptr) {
    throw std::bad_alloc();
  }
  host_bytes += malloc_usable_size(ptr);
  return ptr;
}

void operator delete(void* ptr) noexcept {
  host_bytes -= malloc_usable_size(ptr);
  std::free(ptr);
}

void operator delete(void* ptr, size_t /*bytes*/) noexcept { operator delete(ptr); }

namespace {

// --- Frees that other streams still have to do with.

void a_slow_stream_holds_only_its_own(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream();
  const Stream slow = gpu.source.create_stream(), quick = gpu.source.create_stream();
  for (int i = 0; i < 4000; ++i) {
    free_while_read(gpu, 32 * kKiB, owner, i % 16 == 0 ? slow : quick);
    gpu.source.complete(quick, 1);
  }
  require(gpu.reserved() <= 16 * kMiB, "250 blocks of 32 KiB held back", mib(gpu.reserved()));
}

void a_miss_asks_each_stream_once(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  for (int i = 0; i < 500; ++i) {
    free_while_read(gpu, kMiB, owner, user);
  }
  gpu.source.reset_counts(Shadow::kDevice);
  miss(gpu, owner);
  const uint64_t queries = gpu.source.counts(Shadow::kDevice).event_queries;
  require(queries <= 8, "a query or two a miss", std::to_string(queries) + " for four");
}

void a_stream_that_lasts_has_fewer_events_than_frees(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  if (gpu.pooled != nullptr) {
    gpu.pooled->keep_stream({Shadow::kDevice, user});
  }
  std::vector<Shadow::Allocation> read;
  for (int i = 0; i < 320; ++i) {
    read.push_back(gpu.allocate(kMiB, owner));
  }
  for (const auto& one : read) {
    gpu.use(one, user);
    gpu.free(one);
  }
  const uint64_t events = gpu.source.counts(Shadow::kDevice).event_records;
  require(events <= 32, "an event for ten frees", std::to_string(events) + " for 320");
}

void a_stream_that_has_ended_is_not_asked(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  free_while_read(gpu, 4 * kKiB, owner, user);
  gpu.source.complete_all();
  gpu.source.destroy_stream(user);
  miss(gpu, owner);
}

void a_handle_that_comes_back_is_another_stream(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  free_while_read(gpu, 4 * kKiB, owner, user);
  gpu.source.destroy_stream(user);
  require(gpu.source.create_stream() == user, "the handle again", "another");
  miss(gpu, owner);
  for (int i = 0; i < 512; ++i) {
    gpu.allocate(4 * kKiB, owner);
  }
}

void an_owner_that_ends_leaves_its_memory_to_be_finished(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream();
  const auto written = gpu.allocate(4 * kKiB, owner);
  gpu.source.launch(owner);
  gpu.free(written);
  if (gpu.pooled != nullptr) {
    gpu.pooled->stream_ends({Shadow::kDevice, owner});
  }
  gpu.source.destroy_stream(owner);
  gpu.allocate(4 * kKiB, gpu.source.create_stream());
}

void each_thread_has_its_own_default_stream(Shadow& gpu) {
  const auto written = gpu.allocate(4 * kKiB, kPerThread);
  gpu.source.launch(kPerThread);
  gpu.free(written);
  std::string fault;
  std::thread([&] {
    try {
      gpu.allocate(4 * kKiB, kPerThread);
    } catch (const std::exception& error) {
      fault = error.what();
    }
  }).join();
  require(fault.empty(), "exclusive memory", fault);
}

void another_thread_frees_what_a_default_stream_reads(Shadow& gpu) {
  const auto read = gpu.allocate(4 * kMiB, 0);
  gpu.use(read, kPerThread);
  std::string fault;
  std::thread([&] {
    try {
      gpu.free(read);
      for (int i = 0; i < 8; ++i) {
        gpu.allocate(4 * kMiB, 0);
      }
    } catch (const std::exception& error) {
      fault = error.what();
    }
  }).join();
  require(fault.empty(), "exclusive memory", fault);
}

void no_memory_needs_no_stream(Shadow& gpu) {
  gpu.allocator->deallocate(nullptr, {Shadow::kDevice, 0});
  gpu.allocator->record_stream(nullptr, {Shadow::kDevice, gpu.source.create_stream()});
}

void late_events_are_waited_for(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  gpu.source.lag = 5;
  for (int i = 0; i < 200; ++i) {
    free_while_read(gpu, (1 + i % 7) * kMiB, owner, user);
    gpu.source.complete(user, 1);
  }
}

// --- A driver that refuses.

void a_refused_free_keeps_the_segment(Shadow& gpu) {
  gpu.free(gpu.allocate(512 * kMiB, 0));
  gpu.source.failing_releases = 1;
  try {
    gpu.allocator->trim(Shadow::kDevice, 0);
  } catch (const std::runtime_error&) {
    // The caller may report it.
  }
  gpu.free(gpu.allocate(512 * kMiB, 0));
  require(gpu.reserved() == 512 * kMiB, "the segment used again", mib(gpu.reserved()));
}

void a_refused_free_is_no_reason_to_fail(Shadow& gpu) {
  gpu.free(gpu.allocate(600 * kMiB, gpu.source.create_stream()));
  gpu.free(gpu.allocate(300 * kMiB, gpu.source.create_stream()));
  gpu.source.failing_releases = 1;
  gpu.allocate(200 * kMiB, 0);
}

void a_refused_event_loses_no_memory(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream();
  const auto read = gpu.allocate(600 * kMiB, owner);
  for (int i = 0; i < 3; ++i) {
    gpu.use(read, gpu.source.create_stream());
  }
  gpu.source.failing_records = 2;
  for (int i = 0; i < 3; ++i) {
    try {
      i == 0 ? gpu.free(read) : gpu.allocator->trim(Shadow::kDevice, 0);
    } catch (const std::runtime_error&) {
      // The caller may report it.
    }
  }
  gpu.allocate(600 * kMiB, owner);
}

void a_trim_waits(Shadow& gpu) {
  free_while_read(gpu, 64 * kMiB, 0, gpu.source.create_stream());
  gpu.allocator->trim(Shadow::kDevice, 0);
  require(gpu.reserved() == 0, "nothing reserved", mib(gpu.reserved()));
}

void streams_that_are_gone_take_no_host_memory(Shadow& gpu) {
  constexpr int kStreams = 200;
  const auto come_and_go = [&] {
    for (int i = 0; i < kStreams; ++i) {
      const Stream stream = 0x1000000 + 64 * Stream(i);  // of whoever made it
      gpu.allocator->deallocate(gpu.allocator->allocate(4 * kKiB, {Shadow::kDevice, stream}),
                                {Shadow::kDevice, stream});
      gpu.allocator->trim(Shadow::kDevice, 0);
    }
  };
  gpu.allocator->trim(Shadow::kDevice, 0);
  const size_t before = host_bytes;
  come_and_go();
  const size_t each = (host_bytes - before) / kStreams;
  require(each < kKiB, "less than 1 KiB a stream", std::to_string(each) + " B");
}

// How often an operation with `count` free blocks of two sizes beside each other goes round.
uint64_t steps_of_a_fit(int count) {
  Shadow gpu(64 * kGiB);
  const auto allocate = [&](size_t bytes) { return gpu.allocator->allocate(bytes, {1, 0}); };
  const auto give = [&](void* ptr) { gpu.allocator->deallocate(ptr, {1, 0}); };
  // Sizes that are close, so that bins by size hold both. Three blocks fill a segment, and that in
  // the middle is freed.
  constexpr size_t kLess = 600 * kKiB, kMore = 606 * kKiB;
  std::vector<void*> blocks;
  for (int i = 0; i < 3 * count; ++i) {
    blocks.push_back(allocate(kLess));
  }
  for (int i = 0; i < count; ++i) {
    give(blocks[size_t(3 * i + 1)]);
  }
  const uint64_t before = steps;
  for (int i = 0; i < 10; ++i) {
    allocate(kMore);
  }
  return steps - before;
}

void a_fit_is_found_as_fast_among_many(Shadow& /*gpu*/) {
  const uint64_t few = steps_of_a_fit(100), many = steps_of_a_fit(6400);
  require(many < 4 * few, "at most four times the steps among 64 times the blocks",
          std::to_string(few) + " and " + std::to_string(many));
}

// --- What must not be lost while the faults are mended.

void freed_memory_is_used_again_at_once(Shadow& gpu) {
  for (int i = 0; i < 1000; ++i) {
    const auto one = gpu.allocate((1 + i % 40) * 64 * kKiB, 0);
    gpu.source.launch(0);
    gpu.free(one);
  }
  require(gpu.reserved() <= 22 * kMiB, "one segment of each kind", mib(gpu.reserved()));
}

void full_memory_is_waited_for(Shadow& gpu) {
  const Stream owner = gpu.source.create_stream(), user = gpu.source.create_stream();
  for (int i = 0; i < 20; ++i) {
    free_while_read(gpu, 300 * kMiB, owner, user);
  }
  gpu.allocate(900 * kMiB, 0);
}

struct Situation {
  const char* name;
  void (*run)(Shadow& gpu);
};

#define SITUATION(name) {#name, name}
constexpr Situation kSituations[] = {
    SITUATION(a_slow_stream_holds_only_its_own),
    SITUATION(a_miss_asks_each_stream_once),
    SITUATION(a_stream_that_lasts_has_fewer_events_than_frees),
    SITUATION(a_stream_that_has_ended_is_not_asked),
    SITUATION(a_handle_that_comes_back_is_another_stream),
    SITUATION(an_owner_that_ends_leaves_its_memory_to_be_finished),
    SITUATION(each_thread_has_its_own_default_stream),
    SITUATION(another_thread_frees_what_a_default_stream_reads),
    SITUATION(no_memory_needs_no_stream),
    SITUATION(late_events_are_waited_for),
    SITUATION(a_refused_free_keeps_the_segment),
    SITUATION(a_refused_free_is_no_reason_to_fail),
    SITUATION(a_refused_event_loses_no_memory),
    SITUATION(a_trim_waits),
    SITUATION(streams_that_are_gone_take_no_host_memory),
    SITUATION(a_fit_is_found_as_fast_among_many),
    SITUATION(a_free_inside_a_capture_is_seen_to_after_it),
    SITUATION(a_free_of_another_stream_does_not_end_a_capture),
    SITUATION(a_capture_may_grow_the_heap),
    SITUATION(a_trim_does_not_end_a_capture),
    SITUATION(a_temporary_of_a_graph_stays_its_own),
    SITUATION(graphs_of_two_pools_share_no_memory),
    SITUATION(graphs_of_one_pool_share_memory),
    SITUATION(a_pool_that_nobody_made_is_refused),
    SITUATION(freed_memory_is_used_again_at_once),
    SITUATION(full_memory_is_waited_for),
};

}  // namespace

int main(int count, char** arguments) {
  for (const Situation& situation : kSituations) {
    if (count < 2) {
      std::puts(situation.name);
    } else if (arguments[1] == std::string(situation.name)) {
      try {
        Shadow gpu(kGiB);
        situation.run(gpu);
        gpu.drain();
      } catch (const std::exception& error) {
        std::puts(error.what());
        return 1;
      }
      return 0;
    }
  }
  return count < 2 ? 0 : 2;
}
