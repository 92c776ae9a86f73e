// The observers of phase 5 over a simulated source: allocator_observers off|on
//
// The argument is what the trace of the variant is at first.
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "full_featured.h"
#include "host_source.h"

namespace {

constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20;
using dropin::FullFeatured;
using dropin::SizeStatistics;
using dropin::TraceRing;

int faults = 0;

void expect(bool holds, const char* what) {
  if (!holds) {
    std::printf("expected %s\n", what);
    ++faults;
  }
}

void statistics_tell_small_and_large_apart() {
  HostSource source(256 * kMiB);
  FullFeatured allocator(source);
  void* small = allocator.allocate(1000, {0, 0});
  void* large = allocator.allocate(3 * kMiB, {0, 0});
  allocator.deallocate(large, {0, 0});
  allocator.trim(0, 0);
  const auto stats = allocator.observer<SizeStatistics>(0);
  expect(stats.all.allocations.added == 2 && stats.all.allocations.current == 1, "one of two live");
  expect(stats.small.requested_bytes.current == 1000, "1,000 B requested");
  expect(stats.small.allocated_bytes.current == kKiB, "1 KiB allocated");
  expect(stats.large.allocated_bytes.peak == 3 * kMiB, "3 MiB at most");
  expect(stats.large.reserved_bytes.peak == 20 * kMiB, "a large segment at most");
  expect(stats.large.segments.current == 0 && stats.large.segments.removed == 1, "it returned");
  expect(stats.all.reserved_bytes.current == source.counts(0).reserved, "what the source gave");
  expect(stats.by_size[10].current == 1 && stats.by_size[21].removed == 1, "both sizes counted");
  void* less = allocator.allocate(2 * kMiB, {0, 0});
  const auto after = allocator.observer<SizeStatistics>(0);
  expect(after.large.allocated_bytes.current == 2 * kMiB, "2 MiB allocated");
  expect(after.large.allocated_bytes.peak == 3 * kMiB, "the peak kept");
  allocator.deallocate(less, {0, 0});
  allocator.deallocate(small, {0, 0});
}

void allocate_and_free(Allocator& allocator, int device = 0) {
  allocator.deallocate(allocator.allocate(512, {device, 7}), {device, 7});
}

void a_trace_is_off_until_it_is_switched_on() {
  HostSource source(256 * kMiB);
  FullFeatured allocator(source);
  allocate_and_free(allocator);
  expect(allocator.trace(0).empty(), "nothing recorded before");
  allocator.record_trace(0, true);
  allocate_and_free(allocator, 0);
  allocate_and_free(allocator, 1);
  expect(allocator.trace(0).size() == 2, "a pair, and no growth, which was before");
  expect(allocator.trace(1).empty(), "nothing of another device");
  allocator.record_trace(0, false);
  allocate_and_free(allocator);
  allocator.trim(0, 0);
  expect(allocator.trace(0).size() == 2, "what was recorded kept, and no more");
  allocator.record_trace(0, true);
  allocate_and_free(allocator);
  expect(allocator.trace(0).size() == 5, "growth and a pair after what was kept");
}

void a_trace_holds_what_came_last() {
  HostSource source(256 * kMiB);
  FullFeatured allocator(source);
  allocator.record_trace(0, true);
  allocate_and_free(allocator);
  const auto first = allocator.trace(0);
  expect(first.size() == 3 && first[0].action == TraceRing::Action::kGrown, "growth first");
  expect(first[1].action == TraceRing::Action::kAllocated && first[1].stream == 7, "its stream");
  expect(first[2].action == TraceRing::Action::kFreed && first[2].bytes == 512, "the free last");
  expect(first[1].ticks <= first[2].ticks, "times in order");
  for (size_t i = 0; i < TraceRing::kEntries; ++i) {
    allocate_and_free(allocator);
  }
  const auto all = allocator.trace(0);
  expect(all.size() == TraceRing::kEntries, "no more than the ring holds");
  expect(all.back().action == TraceRing::Action::kFreed, "the newest at the end");
  allocator.trim(0, 0);
  expect(allocator.trace(0).back().action == TraceRing::Action::kReturned, "a segment returned");
}

void a_trace_is_switched_while_threads_allocate() {
  HostSource source(256 * kMiB);
  FullFeatured allocator(source);
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      allocate_and_free(allocator);
    }
  });
  for (int i = 0; i < 100; ++i) {
    allocator.record_trace(0, i % 2 == 0);
    expect(allocator.trace(0).size() <= TraceRing::kEntries, "what the ring holds");
  }
  allocator.record_trace(0, true);
  allocate_and_free(allocator);
  expect(!allocator.trace(0).empty(), "entries in the end");
  is_over = true;
  other.join();
}

void the_variant_has_its_trace(bool on) {
  HostSource source(256 * kMiB);
  const auto allocator = make_allocator(source);
  auto* complete = dynamic_cast<FullFeatured*>(allocator.get());
  expect(complete != nullptr, "all observers in the variant");
  allocate_and_free(*complete);
  expect(complete->trace(0).empty() != on, on ? "its trace on" : "its trace off");
}

void a_hook_may_free_memory_before_a_request_fails() {
  HostSource source(64 * kMiB);
  FullFeatured allocator(source);
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

int main(int count, char** arguments) {
  statistics_tell_small_and_large_apart();
  a_trace_is_off_until_it_is_switched_on();
  a_trace_holds_what_came_last();
  a_trace_is_switched_while_threads_allocate();
  a_hook_may_free_memory_before_a_request_fails();
  the_variant_has_its_trace(count > 1 && arguments[1] == std::string("on"));
  return faults == 0 ? 0 : 1;
}
