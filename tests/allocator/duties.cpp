// The duties of phase 5, told over a source that only counts: allocator_duties
#include <cstdio>
#include <mutex>

#include "dropin.h"
#include "host_source.h"

namespace {

constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20;
using dropin::SizeStatistics;
using dropin::TraceRing;
using Complete = dropin::Dropin<std::mutex, SizeStatistics, TraceRing>;

int faults = 0;

void expect(bool holds, const char* what) {
  if (!holds) {
    std::printf("expected %s\n", what);
    ++faults;
  }
}

void statistics_tell_small_and_large_apart() {
  HostSource source(256 * kMiB);
  Complete allocator(source);
  void* small = allocator.allocate(1000, {0, 0});
  void* large = allocator.allocate(3 * kMiB, {0, 0});
  allocator.deallocate(large, {0, 0});
  allocator.trim(0, 0);
  const auto told = allocator.duty<SizeStatistics>(0);
  expect(told.all.allocations.added == 2 && told.all.allocations.current == 1, "one of two live");
  expect(told.small.requested_bytes.current == 1000, "1,000 B requested");
  expect(told.small.allocated_bytes.current == kKiB, "1 KiB allocated");
  expect(told.large.allocated_bytes.peak == 3 * kMiB, "3 MiB at most");
  expect(told.large.reserved_bytes.peak == 20 * kMiB, "a large segment at most");
  expect(told.large.segments.current == 0 && told.large.segments.removed == 1, "it returned");
  expect(told.all.reserved_bytes.current == source.counts(0).reserved, "what the source gave");
  expect(told.by_size[10].current == 1 && told.by_size[21].removed == 1, "both sizes counted");
  allocator.deallocate(small, {0, 0});
}

void a_trace_holds_what_came_last() {
  HostSource source(256 * kMiB);
  Complete allocator(source);
  allocator.deallocate(allocator.allocate(512, {0, 7}), {0, 7});
  const auto first = allocator.duty<TraceRing>(0).entries();
  expect(first.size() == 3 && first[0].action == TraceRing::Action::kGrown, "growth first");
  expect(first[1].action == TraceRing::Action::kAllocated && first[1].stream == 7, "its stream");
  expect(first[2].action == TraceRing::Action::kFreed && first[2].bytes == 512, "the free last");
  expect(first[1].ticks <= first[2].ticks, "times in order");
  for (size_t i = 0; i < TraceRing::kEntries; ++i) {
    allocator.deallocate(allocator.allocate(512, {0, 7}), {0, 7});
  }
  const auto all = allocator.duty<TraceRing>(0).entries();
  expect(all.size() == TraceRing::kEntries, "no more than the ring holds");
  expect(all.back().action == TraceRing::Action::kFreed, "the newest at the end");
}

void a_hook_may_free_memory_before_a_request_fails() {
  HostSource source(64 * kMiB);
  Complete allocator(source);
  void* spare = allocator.allocate(48 * kMiB, {0, 0});
  allocator.on_out_of_memory([&](int device, size_t bytes) {
    expect(device == 0 && bytes == 32 * kMiB, "the request that found nothing");
    const bool has_some = spare != nullptr;
    allocator.deallocate(spare, {0, 0});
    spare = nullptr;
    return has_some;
  });
  void* wanted = allocator.allocate(32 * kMiB, {0, 0});
  expect(wanted != nullptr && spare == nullptr, "memory after the hook");
  try {
    allocator.allocate(32 * kMiB, {0, 0});
    expect(false, "OutOfMemory where no hook has any");
  } catch (const OutOfMemory& error) {
    expect(error.snapshot.size() == 2, "the heap in the error");
  }
  allocator.deallocate(wanted, {0, 0});
}

}  // namespace

int main() {
  statistics_tell_small_and_large_apart();
  a_trace_holds_what_came_last();
  a_hook_may_free_memory_before_a_request_fails();
  return faults == 0 ? 0 : 1;
}
