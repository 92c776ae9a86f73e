// The hostile source with pages that are mapped, and with streams that wait for each other.
#pragma once

#include <numeric>

#include "hostile_source.h"
#include "mapping.h"
#include "stream_order.h"

// Ranges far apart, on one device. Memory of segments and of pages is of one capacity.
class HostilePages : public HostileSource, public Mapping {
 public:
  using HostileSource::HostileSource;

  char* reserve(int /*device*/) override {
    const Lock lock(mutex_);
    refuse_in_capture("cuMemAddressReserve");
    next_ += size_t{1} << 38;
    ranges_[next_];
    return next_;
  }

  bool extend(int /*device*/, char* range, size_t bytes) override {
    const Lock lock(mutex_);
    refuse_in_capture("cuMemCreate");
    ++counts_.allocations;
    if (is_allocation_refused(bytes)) {
      return false;
    }
    ranges_.at(range).push_back(bytes);
    counts_.reserved += bytes;
    counts_.peak_reserved = std::max(counts_.peak_reserved, counts_.reserved);
    return true;
  }

  size_t shrink(int /*device*/, char* range, size_t keep) override {
    const Lock lock(mutex_);
    refuse_in_capture("cuMemUnmap");
    std::vector<size_t>& pieces = ranges_.at(range);
    size_t mapped = std::accumulate(pieces.begin(), pieces.end(), size_t{0});
    while (!pieces.empty() && mapped - pieces.back() >= keep) {
      work_.finish_all();  // it waits for the device
      ++counts_.frees;
      counts_.reserved -= pieces.back();
      mapped -= pieces.back();
      pieces.pop_back();
    }
    return mapped;
  }

  void drop(int device, char* range) override {
    shrink(device, range, 0);
    const Lock lock(mutex_);
    ranges_.erase(range);
  }

  // Memory from `address` on, of pages or a segment.
  size_t room_at(uintptr_t address) {
    const Lock lock(mutex_);
    size_t room = 0;
    const auto look = [&](uintptr_t start, size_t bytes) {
      room = address >= start && address < start + bytes ? start + bytes - address : room;
    };
    for (const auto& [start, bytes] : given_out_) {
      look(start, bytes);
    }
    for (const auto& [range, pieces] : ranges_) {
      look(reinterpret_cast<uintptr_t>(range),
           std::accumulate(pieces.begin(), pieces.end(), size_t{0}));
    }
    return room;
  }

  size_t range_count() const { return ranges_.size(); }

 private:
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 44);
  std::map<char*, std::vector<size_t>> ranges_;  // the pieces of each
};

class HostileOrder : public HostilePages, public StreamOrder {
 public:
  using HostilePages::HostilePages;

  void wait_for_event(int /*device*/, Stream stream, Event event) override {
    const Lock lock(mutex_);
    give_wait(stream, event);
  }
};
