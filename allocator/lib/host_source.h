// A simulated source without a GPU: addresses that nothing reads, and streams that a test advances.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "memory_source.h"

class HostSource : public MemorySource {
 public:
  // `capacity` bytes on each device.
  explicit HostSource(size_t capacity) : capacity_(capacity) {}

  void* allocate(int device, size_t bytes) override {
    Device& state = at(device);
    ++state.counts.allocations;
    if (state.failures > 0) {
      --state.failures;
      return nullptr;
    }
    if (state.counts.reserved + bytes > capacity_) {
      return nullptr;
    }
    // The lowest gap that fits: addresses are reused, so that stale pointers become valid again.
    uintptr_t ptr = kBase;
    for (const auto& [start, size] : state.ranges) {
      if (start >= ptr + bytes + kGuard) {
        break;
      }
      ptr = (start + size + kGuard + kAlignment - 1) / kAlignment * kAlignment;
    }
    state.ranges.emplace(ptr, bytes);
    state.counts.reserved += bytes;
    state.counts.peak_reserved = std::max(state.counts.peak_reserved, state.counts.reserved);
    return reinterpret_cast<void*>(ptr);
  }

  void release(int device, void* ptr) override {
    Device& state = at(device);
    const auto found = state.ranges.find(reinterpret_cast<uintptr_t>(ptr));
    if (found == state.ranges.end()) {
      throw std::logic_error("release: not an allocation of this source");
    }
    ++state.counts.frees;
    state.counts.reserved -= found->second;
    state.ranges.erase(found);
  }

  Event record(int device, Stream stream) override {
    Device& state = at(device);
    ++state.counts.event_records;
    state.events.emplace(++state.last_event, Point{stream, state.streams[stream].enqueued});
    return state.last_event;
  }

  bool is_done(int device, Event event) override {
    Device& state = at(device);
    ++state.counts.event_queries;
    const Point point = state.events.at(event);
    return state.streams[point.stream].done >= point.position;
  }

  void wait(int device, Event event) override {
    Device& state = at(device);
    ++state.counts.event_waits;
    const Point point = state.events.at(event);
    uint64_t& done = state.streams[point.stream].done;
    done = std::max(done, point.position);
  }

  void recycle(int device, Event event) override { at(device).events.erase(event); }

  SourceCounts counts(int device) const override { return devices_.at(size_t(device)).counts; }

  void reset_counts(int device) override {
    SourceCounts& counts = at(device).counts;
    counts = {counts.reserved, counts.reserved, 0, 0, 0, 0, 0};
  }

  // Controls for tests: enqueue work on a stream, complete its next `count` items, let the next
  // `count` allocations fail. An event is complete when the work enqueued before it is.
  uint64_t enqueue(int device, Stream stream) { return ++at(device).streams[stream].enqueued; }

  void complete(int device, Stream stream, uint64_t count) {
    Progress& progress = at(device).streams[stream];
    progress.done = std::min(progress.enqueued, progress.done + count);
  }

  // State for tests: work items by stream, allocations by address, events not recycled.
  uint64_t enqueued(int device, Stream stream) { return at(device).streams[stream].enqueued; }
  uint64_t done(int device, Stream stream) { return at(device).streams[stream].done; }
  void fail_next(int device, uint64_t count) { at(device).failures = count; }
  uint64_t failures(int device) { return at(device).failures; }
  const std::map<uintptr_t, size_t>& ranges(int device) { return at(device).ranges; }
  size_t events_alive(int device) { return at(device).events.size(); }
  size_t capacity() const { return capacity_; }

 private:
  struct Point {
    Stream stream;
    uint64_t position;
  };
  struct Progress {
    uint64_t enqueued = 0;
    uint64_t done = 0;
  };
  struct Device {
    std::map<uintptr_t, size_t> ranges;
    std::unordered_map<Stream, Progress> streams;
    std::unordered_map<Event, Point> events;
    Event last_event = 0;
    uint64_t failures = 0;
    SourceCounts counts;
  };

  static constexpr uintptr_t kBase = uintptr_t{1} << 40;
  static constexpr size_t kAlignment = 512;
  static constexpr size_t kGuard = 1 << 16;  // so that two segments are never adjacent

  Device& at(int device) { return devices_.at(size_t(device)); }

  size_t capacity_;
  std::array<Device, kMaxDevices> devices_;
};
