// Scenarios that every allocator must pass, beside the random storm. Each begins with a device of
// 1 GiB and two new streams, and everything is drained after it.
#pragma once

#include <malloc.h>

#include "full_featured.h"
#include "shadow.h"

struct Scenario {
  const char* source;  // as drive.cpp names it
  const char* name;
  void (*run)(Shadow& gpu, Stream owner, Stream user);
};

constexpr PoolId kPool{0, 1};

inline void at_most(uint64_t most, uint64_t got, const std::string& unit) {
  require(got <= most, "at most " + std::to_string(most) + " " + unit, std::to_string(got));
}

// Requests that nothing free can serve.
inline void miss(Shadow& gpu, Stream stream) {
  for (int i = 0; i < 4; ++i) {
    gpu.allocate(15 * kMiB, stream);
  }
}

template <typename Call>
bool throws(Call call) {
  try {
    call();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

inline void allocate_and_free(Allocator& allocator, int device = 0) {
  allocator.deallocate(allocator.allocate(512, {device, 7}), {device, 7});
}

constexpr Scenario kScenarios[] = {
    // Frees of memory that other streams use, without and with a wait on the device.
    {"order", "a slow stream holds only its memory",
     [](Shadow& gpu, Stream owner, Stream user) {
       const Stream quick = gpu.source.create_stream();
       for (int i = 0; i < 4000; ++i) {
         gpu.free_while_read(32 * kKiB, owner, i % 16 == 0 ? user : quick);
         gpu.source.complete(quick, 1);
       }
       at_most(16 * kMiB, gpu.counts().reserved, "B for 250 blocks of 32 KiB");
     }},
    {"order", "a miss asks each stream once",
     [](Shadow& gpu, Stream owner, Stream user) {
       for (int i = 0; i < 500; ++i) {
         gpu.free_while_read(kMiB, owner, user);
       }
       gpu.source.reset_counts(Shadow::kDevice);
       miss(gpu, owner);
       at_most(8, gpu.counts().event_queries, "queries for four misses");
     }},
    {"order", "exhausted memory is waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       for (int i = 0; i < 20; ++i) {
         gpu.free_while_read(300 * kMiB, owner, user);
       }
       gpu.allocate(900 * kMiB);
     }},
    {"order", "a trim waits",
     [](Shadow& gpu, Stream, Stream user) {
       gpu.free_while_read(64 * kMiB, 0, user);
       gpu.allocator->trim(Shadow::kDevice, 0);
       gpu.reserves(0);
     }},
    {"order", "streams that are gone take no host memory",
     [](Shadow& gpu, Stream, Stream) {
       std::vector<Stream> streams(200);
       for (Stream& stream : streams) {
         stream = gpu.source.create_stream();
       }
       const size_t before = mallinfo2().uordblks;
       for (const Stream stream : streams) {
         const Place place{Shadow::kDevice, stream};
         gpu.allocator->deallocate(gpu.allocator->allocate(4 * kKiB, place), place);
         gpu.allocator->trim(Shadow::kDevice, 0);
       }
       at_most(200 * kKiB, mallinfo2().uordblks - before, "B for 200 streams");
     }},
    {"order", "much memory is waited for on the device, and nobody on the host",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.reserves(64 * kMiB);
       at_most(0, gpu.counts().event_waits, "waits of the host");
       require(!gpu.source.is_idle(owner), "an owner that waits", "an idle one");
     }},
    {"order", "little memory is not waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.allocate(512 * kMiB, owner);
       gpu.free_while_read(16 * kMiB, owner, user);
       gpu.allocate(16 * kMiB, owner);
       gpu.reserves(544 * kMiB);
       require(gpu.source.is_idle(owner), "an idle owner", "one that waits");
     }},
    {"order", "an owner waits for no later use than that of the memory it gets",
     [](Shadow& gpu, Stream owner, Stream user) {
       const auto first = gpu.allocate(64 * kMiB, owner), second = gpu.allocate(64 * kMiB, owner);
       for (const auto& read : {first, second}) {
         gpu.use(read, user);
         gpu.free(read);
       }
       gpu.allocate(64 * kMiB, owner);
       gpu.source.complete(user, 1);
       gpu.source.complete(owner, ~uint64_t{0});
       require(gpu.source.is_idle(owner), "a wait for the first use", "one for both");
       gpu.allocate(64 * kMiB, owner);
     }},
    {"order", "an owner waits for the use of the memory it gets, whatever was freed before",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(4 * kMiB, owner, user);
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
     }},
    {"order", "an owner that waits gets memory of its heap only",
     [](Shadow& gpu, Stream owner, Stream user) {
       const Stream other = gpu.source.create_stream();
       gpu.pooled.keep_stream({Shadow::kDevice, user});  // one event for both
       gpu.free_while_read(4 * kMiB, other, user);
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.allocate(4 * kMiB, other);
     }},
    {"order", "all users are waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       const auto read = gpu.allocate(64 * kMiB, owner);
       gpu.use(read, user);
       gpu.use(read, 0);
       gpu.free(read);
       gpu.source.complete(user, 1);
       gpu.allocate(64 * kMiB, owner);
     }},
    // Captures and refusals of the driver.
    {"order", "during a capture the heap may grow, and no trim ends it",
     [](Shadow& gpu, Stream owner, Stream) {
       gpu.free(gpu.allocate(512 * kMiB));
       const size_t graph = gpu.begin_capture(owner, kPool);
       gpu.allocate(64 * kMiB, owner);
       gpu.allocate(64 * kMiB);
       throws([&] { gpu.allocator->trim(Shadow::kDevice, 0); });
       gpu.end_capture(graph, owner);
       gpu.destroy_graph(graph);
     }},
    {"order", "a captured stream waits for nothing outside of its graph",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.source.begin_capture(owner, true);
       gpu.allocate(64 * kMiB, owner);
       gpu.source.end_capture(owner);
     }},
    {"order", "graphs of one pool share its memory",
     [](Shadow& gpu, Stream owner, Stream) {
       for (int i = 0; i < 10; ++i) {
         const size_t graph = gpu.begin_capture(owner, kPool);
         gpu.free(gpu.allocate(64 * kMiB, owner));
         gpu.end_capture(graph, owner);
       }
       gpu.reserves(64 * kMiB);
       for (size_t graph = 0; graph < 10; ++graph) {
         gpu.destroy_graph(graph);
       }
     }},
    // Pages that are mapped where they are needed.
    {"pages", "a batch that grows gets the memory of the previous one",
     [](Shadow& gpu, Stream, Stream) {
       for (size_t size = 1; size < 16; ++size) {
         std::vector<Shadow::Allocation> batch;
         for (int i = 0; i < 8; ++i) {
           batch.push_back(gpu.allocate((16 + size) * kMiB));
         }
         for (const auto& block : batch) {
           gpu.free(block);
         }
         gpu.reserves(8 * (16 + size) * kMiB);
       }
     }},
    {"pages", "a range begins with a segment, or with the memory that is left",
     [](Shadow& gpu, Stream owner, Stream) {
       gpu.allocate(3 * kMiB);
       gpu.reserves(20 * kMiB);
       gpu.allocator->set_limit(Shadow::kDevice, 24 * kMiB);
       gpu.allocate(3 * kMiB, owner);
       gpu.reserves(24 * kMiB);
     }},
    {"pages", "the end of a range is used last, however well it fits",
     [](Shadow& gpu, Stream, Stream) {
       const auto before = gpu.allocate(64 * kMiB);
       const uintptr_t hole = before->start;
       gpu.allocate(2 * kMiB);
       gpu.free(gpu.allocate(32 * kMiB));
       gpu.free(before);
       require(gpu.allocate(32 * kMiB)->start == hole, "the hole that fits", "the end");
     }},
    // Observers of the allocator with PyTorch's feature set.
    {"segments", "statistics are by kind and size, and keep peaks",
     [](Shadow&, Stream, Stream) {
       HostileSource source(kGiB);
       dropin::FullFeatured allocator(source);
       allocator.allocate(1000, {0, 0});
       allocator.deallocate(allocator.allocate(3 * kMiB, {0, 0}), {0, 0});
       allocator.trim(0, 0);
       allocator.allocate(2 * kMiB, {0, 0});
       const auto stats = allocator.observer<dropin::SizeStatistics>(0);
       const auto &small = stats.small, &large = stats.large;
       const std::pair<uint64_t, uint64_t> counts[] = {
           {stats.all.allocations.added, 3},
           {stats.all.allocations.current, 2},
           {small.requested_bytes.current, 1000},
           {small.allocated_bytes.current, kKiB},
           {large.allocated_bytes.peak, 3 * kMiB},
           {large.allocated_bytes.current, 2 * kMiB},
           {large.reserved_bytes.peak, 20 * kMiB},
           {large.segments.removed, 1},
           {stats.all.reserved_bytes.current, source.counts(0).reserved},
           {stats.by_size[10].current, 1},
           {stats.by_size[21].removed, 1},
       };
       for (const auto& [got, expected] : counts) {
         require(got == expected, std::to_string(expected), std::to_string(got));
       }
     }},
    {"segments", "a trace holds the last events of its device while it is on",
     [](Shadow&, Stream, Stream) {
       HostileSource source(kGiB);
       dropin::FullFeatured allocator(source);
       allocate_and_free(allocator);
       require(allocator.trace(0).empty(), "no trace at first", "one");
       allocator.record_trace(1, true);
       for (size_t i = 0; i < dropin::TraceRing::kEntries; ++i) {
         allocate_and_free(allocator, int(i % 2));
       }
       const auto trace = allocator.trace(1);
       allocator.record_trace(1, false);
       allocate_and_free(allocator, 1);
       require(allocator.trace(0).empty(), "no trace of another device", "one");
       require(allocator.trace(1).size() == dropin::TraceRing::kEntries && trace[0].stream == 7 &&
                   trace[0].action == dropin::TraceRing::Action::kAllocated &&
                   trace.back().action == dropin::TraceRing::Action::kFreed &&
                   trace.back().bytes == 512 && trace[0].ticks <= trace.back().ticks,
               "events in their order", "others");
     }},
};
