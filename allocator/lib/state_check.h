// Drives an allocator over the simulated source and checks its invariants after every step.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "allocation_counts.h"
#include "host_source.h"

// A violated invariant: expected and got.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

// The allocator must support streams, tickets, limits and snapshots, as p4_final does. Every action
// checks all invariants and throws Broken. Sizes are in B. `index` selects a live
// allocation, modulo their number. Tests call it through bindings.cpp, from one thread.
class StateCheck {
 public:
  // A device of `capacity` bytes with nothing allocated.
  explicit StateCheck(size_t capacity)
      : source_(capacity), allocator_(make_allocator(source_)), limit_(SIZE_MAX) {}

  // Allocates; returns the index among the live allocations, or -1 where memory is exhausted, which
  // is accepted only if no memory could have served the request.
  int64_t allocate(uint64_t bytes, uint64_t stream) {
    const std::vector<BlockInfo> before = snapshot();
    const uint64_t calls = source_.counts(kDevice).allocations;
    const bool fails = source_.failures(kDevice) > 0;
    const bool fits = fits_free(before, bytes, stream);
    void* ptr = nullptr;
    try {
      ptr = allocator_->allocate(bytes, {kDevice, stream});
    } catch (const OutOfMemory& error) {
      require(!fits, "an allocation where a free block fits", error.what());
      require(!could_grow(bytes) || fails, "memory where the source has some", error.what());
      require(error.snapshot.size() == snapshot().size(), "the heap in the error", "another");
      check();
      return -1;
    }
    if (bytes == 0) {
      require(ptr == nullptr, "no address for no bytes", "one");
      check();
      return -1;
    }
    const bool grew = source_.counts(kDevice).allocations != calls;
    require(!(fits && grew), "reuse of a free block that fits", "a call of the driver");
    require(!grew || source_.counts(kDevice).reserved <= limit_, "growth within the limit",
            "beyond");
    const uintptr_t start = reinterpret_cast<uintptr_t>(ptr);
    require(start % 512 == 0, "512-byte alignment", "another");
    for (const Busy& use : pending_uses_) {
      const bool overlaps = use.start < start + bytes && start < use.start + use.size;
      if (overlaps) {
        for (const auto& [user, position] : use.until) {
          require(source_.done(kDevice, user) >= position, "no reuse before the event",
                  "memory that stream " + std::to_string(user) + " still uses");
        }
      }
    }
    live_.push_back({start, bytes, stream, {}, allocator_->ticket(ptr, kDevice)});
    check();
    return int64_t(live_.size()) - 1;
  }

  // Frees a live allocation, optionally by its ticket; does nothing if none is live.
  void free(uint64_t index, bool with_ticket) {
    if (live_.empty()) {
      return;
    }
    const size_t which = index % live_.size();
    const Live live = live_[which];
    void* ptr = reinterpret_cast<void*>(live.start);
    if (with_ticket) {
      allocator_->deallocate_ticket(ptr, {kDevice, live.stream}, live.ticket);
    } else {
      allocator_->deallocate(ptr, {kDevice, live.stream});
    }
    if (!live.users.empty()) {
      Busy use{live.start, live.bytes, {}};
      for (const uint64_t user : live.users) {
        use.until.emplace_back(user, source_.enqueued(kDevice, user));
      }
      pending_uses_.push_back(use);
    }
    stale_ = live;
    live_.erase(live_.begin() + int64_t(which));
    forget_done();
    check();
  }

  // Enqueues work on `stream` and records the stream as a user of a live allocation.
  void record(uint64_t index, uint64_t stream) {
    if (live_.empty()) {
      return;
    }
    Live& live = live_[index % live_.size()];
    source_.enqueue(kDevice, stream);
    allocator_->record_stream(reinterpret_cast<void*>(live.start), {kDevice, stream});
    if (stream != live.stream) {
      live.users.insert(stream);
    }
    check();
  }

  // Completes the next `count` work items of a stream.
  void complete(uint64_t stream, uint64_t count) {
    source_.complete(kDevice, stream, count);
    forget_done();
    check();
  }

  // Trims, and checks that no free segment is kept beyond `keep` bytes.
  void trim(uint64_t keep) {
    allocator_->trim(kDevice, keep);
    for (const BlockInfo& block : snapshot()) {
      const bool is_free_segment = block.ptr == block.segment &&
                                   block.size == source_.ranges(kDevice).at(block.segment) &&
                                   block.state == BlockState::kFree;
      require(!is_free_segment || source_.counts(kDevice).reserved <= keep,
              "free segments returned", "one kept");
    }
    check();
  }

  // Sets the limit; growth beyond `bytes` is a violation from then on.
  void set_limit(uint64_t bytes) {
    limit_ = bytes;
    allocator_->set_limit(kDevice, bytes);
    check();
  }

  // Lets the next `count` allocations of the source fail.
  void fail_driver(uint64_t count) { source_.fail_next(kDevice, count); }

  // Checks that invalid frees are refused and change nothing.
  void misuse(uint64_t index) {
    refuse(0x1000, "a foreign pointer");
    for (const BlockInfo& block : snapshot()) {
      if (block.state != BlockState::kUsed) {
        refuse(block.ptr, "a free block");
        break;
      }
    }
    if (!live_.empty()) {
      const Live& live = live_[index % live_.size()];
      refuse(live.start + 512 * (live.bytes > 512), "an interior pointer", live.bytes > 512);
      refuse(live.start + 1, "a pointer off by one");
      try {
        allocator_->deallocate_ticket(reinterpret_cast<void*>(live.start), {kDevice, live.stream},
                                      stale_.ticket);
        require(false, "a stale ticket refused", "a free");
      } catch (const InvalidPointer&) {
      }
    }
    const bool is_live = std::any_of(live_.begin(), live_.end(),
                                     [&](const Live& one) { return one.start == stale_.start; });
    if (!is_live) {
      refuse(stale_.start, "a double free", stale_.start != 0);
    }
    check();
  }

  // Performs `count` random actions from `seed`, with sizes of up to 2^`max_log2` bytes.
  void burst(uint64_t seed, uint64_t count, uint64_t max_log2) {
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t which = random() % 100;
      const uint64_t value = random();
      const uint64_t stream = random() % 3;
      const bool crowded = live_.size() > 60;
      if (which < (crowded ? 20u : 45u)) {
        const uint64_t log = random() % (max_log2 + 1);
        allocate(1 + value % (uint64_t{1} << log), stream);
      } else if (which < 75) {
        free(value, which % 2 == 0);
      } else if (which < 85) {
        record(value, stream);
      } else if (which < 92) {
        complete(stream, value % 4);
      } else if (which < 94) {
        trim(value % (uint64_t{64} << 20));
      } else if (which < 96) {
        set_limit(which == 94 ? SIZE_MAX : value % source_.capacity());
      } else if (which < 98) {
        fail_driver(value % 3);
      } else {
        misuse(value);
      }
    }
    operations_ += count;
  }

  // Frees everything, completes all work, returns all memory, and checks that none is left.
  void drain() {
    while (!live_.empty()) {
      free(0, false);
    }
    for (uint64_t stream = 0; stream < 8; ++stream) {
      complete(stream, UINT64_MAX / 2);
    }
    trim(0);
    require(source_.counts(kDevice).reserved == 0, "everything returned", "memory left");
    require(source_.events_alive(kDevice) == 0, "every event recycled", "some left");
  }

  // Number of random actions so far, and of live allocations.
  uint64_t operations() const { return operations_; }
  size_t live() const { return live_.size(); }

  // Checks all invariants: blocks tile their segments, free neighbours are merged, live allocations
  // lie in used blocks of their stream, and statistics add up.
  void check() {
    const std::vector<BlockInfo> blocks = snapshot();
    const Statistics stats = allocator_->statistics(kDevice);
    std::map<uintptr_t, const BlockInfo*> used;
    size_t active = 0, requested = 0, tiled = 0, segments = 0;
    const BlockInfo* before = nullptr;
    for (const BlockInfo& block : blocks) {
      const bool is_first = before == nullptr || before->segment != block.segment;
      if (is_first) {
        require(before == nullptr || is_end(*before), "segments tiled to their end", "a gap");
        require(block.ptr == block.segment, "a segment tiled from its start", "a gap");
        require(source_.ranges(kDevice).count(block.segment) == 1, "a segment of the source",
                "another address");
        ++segments;
      } else {
        require(before->ptr + before->size == block.ptr, "blocks side by side", "a gap or overlap");
        require(!(before->state == BlockState::kFree && block.state == BlockState::kFree),
                "free neighbours merged", "two of them");
        require(before->stream == block.stream, "one stream a segment", "two");
      }
      require(block.size > 0 && block.size % 512 == 0, "a size in granules of 512 B",
              std::to_string(block.size));
      tiled += block.size;
      if (block.state == BlockState::kUsed) {
        used.emplace(block.ptr, &block);
        active += block.size;
        requested += block.requested;
      }
      before = &block;
    }
    require(before == nullptr || is_end(*before), "segments tiled to their end", "a gap");
    require(segments == source_.ranges(kDevice).size(), "every segment known", "one lost");
    require(used.size() == live_.size(), "a used block for each live allocation", "another count");
    for (const Live& live : live_) {
      const auto found = used.find(live.start);
      require(found != used.end(), "a live allocation in use", "none at its address");
      const BlockInfo& block = *found->second;
      require(block.requested == live.bytes && block.size >= live.bytes, "room for what was asked",
              "less");
      require(block.stream == live.stream, "memory of the stream that asked", "another stream's");
    }
    require(stats.active == active && stats.requested == requested, "the tallies of used blocks",
            "others");
    require(stats.reserved == tiled && tiled == source_.counts(kDevice).reserved,
            "reserved bytes that add up", "others");
    require(stats.allocations - stats.frees == live_.size(), "allocations less frees live",
            "others");
  }

 private:
  static constexpr int kDevice = 1;  // not 0, so that a call that ignores it is noticed

  struct Live {
    uintptr_t start = 0;
    uint64_t bytes = 0;
    uint64_t stream = 0;
    std::set<uint64_t> users;
    uint64_t ticket = 0;
  };
  // Freed memory that streams use until certain work items are complete.
  struct Busy {
    uintptr_t start;
    uint64_t size;
    std::vector<std::pair<uint64_t, uint64_t>> until;
  };

  static void require(bool holds, const std::string& expected, const std::string& got) {
    if (!holds) {
      throw Broken("expected " + expected + ", got " + got);
    }
  }

  std::vector<BlockInfo> snapshot() { return allocator_->snapshot(kDevice); }

  bool is_end(const BlockInfo& block) {
    return block.ptr + block.size == block.segment + source_.ranges(kDevice).at(block.segment);
  }

  // Whether adjacent free or cached blocks of the request's stream and segment kind have room for
  // it.
  bool fits_free(const std::vector<BlockInfo>& blocks, uint64_t bytes, uint64_t stream) {
    const uint64_t size = rounded(bytes);
    const bool is_small = size <= kSmallRequest;
    uintptr_t segment = 0;
    uint64_t run = 0;
    for (const BlockInfo& block : blocks) {
      const bool is_small_segment =
          source_.ranges(kDevice).at(block.segment) <= (uint64_t{2} << 20);
      const bool usable = block.state == BlockState::kFree || block.state == BlockState::kCached;
      if (block.segment != segment || !usable) {
        run = 0;
        segment = block.segment;
      }
      if (usable && block.stream == stream && is_small == is_small_segment) {
        run += block.size;
        if (run >= size) {
          return true;
        }
      }
    }
    return false;
  }

  // Whether a new segment for the request fits beside all reserved memory.
  bool could_grow(uint64_t bytes) {
    const uint64_t segment = std::max<uint64_t>(rounded(bytes) + (2u << 20), 20u << 20);
    const uint64_t room = std::min<uint64_t>(limit_, source_.capacity());
    return source_.counts(kDevice).reserved + segment <= room;
  }

  void refuse(uintptr_t ptr, const std::string& what, bool applies = true) {
    if (!applies) {
      return;
    }
    try {
      allocator_->deallocate(reinterpret_cast<void*>(ptr), {kDevice, 0});
    } catch (const InvalidPointer&) {
      return;
    }
    require(false, what + " refused", "a free");
  }

  void forget_done() {
    pending_uses_.erase(
        std::remove_if(pending_uses_.begin(), pending_uses_.end(),
                       [&](const Busy& use) {
                         return std::all_of(
                             use.until.begin(), use.until.end(), [&](const auto& work) {
                               return source_.done(kDevice, work.first) >= work.second;
                             });
                       }),
        pending_uses_.end());
  }

  HostSource source_;
  std::unique_ptr<Allocator> allocator_;
  uint64_t limit_;
  std::vector<Live> live_;
  std::vector<Busy> pending_uses_;
  Live stale_;
  uint64_t operations_ = 0;
};
