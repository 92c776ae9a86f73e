// Replays tapes of operations on an allocator: checked, timed as a whole, or timed one by one.
// workload.py makes the tapes and calls it through bindings.cpp.
#pragma once

#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "allocator.h"

enum class OpKind : uint32_t { kAllocate, kFree, kRecord, kWrite };

// One operation on the allocation in a slot; `stream` is an index, 0 for the default stream.
struct Op {
  OpKind kind;
  uint32_t slot;
  uint64_t bytes;  // to allocate, or to write
  uint64_t stream;
};
using Tape = std::vector<Op>;

// Enqueues a write of the first `bytes` bytes at `ptr` on a stream.
using Write = void (*)(void* ptr, uint64_t bytes, Stream stream);

// Histogram of durations, from 1 to 2^40 ticks of the time-stamp counter, with bins of about 3 %.
class Histogram {
 public:
  void add(uint64_t ticks) {
    ++counts_[bin(ticks)];
    ++total_;
    max_ = std::max(max_, ticks);
  }

  void add(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) {
      counts_[i] += other.counts_[i];
    }
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
  }

  // Ticks that `share` of the durations do not exceed.
  double quantile(double share) const {
    const auto wanted = uint64_t(std::ceil(share * double(total_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted && seen > 0) {
        return middle(i);
      }
    }
    return double(max_);
  }

  double max() const { return double(max_); }

 private:
  static constexpr int kBits = 5;  // 32 bins an octave

  static size_t bin(uint64_t ticks) {
    if (ticks < (1u << kBits)) {
      return size_t(ticks);
    }
    const int log = std::min(63 - __builtin_clzll(ticks), 40);
    return (size_t(log - kBits + 1) << kBits) + ((ticks >> (log - kBits)) & ((1u << kBits) - 1));
  }

  static double middle(size_t bin) {
    if (bin < (1u << kBits)) {
      return double(bin);
    }
    const int log = int(bin >> kBits) + kBits - 1;
    const double width = std::ldexp(1.0, log - kBits);
    return std::ldexp(1.0, log) + (double(bin & ((1u << kBits) - 1)) + 0.5) * width;
  }

  std::array<uint64_t, (41 - kBits + 1) << kBits> counts_{};
  uint64_t total_ = 0;
  uint64_t max_ = 0;
};

// Percentiles of single operations, in s.
struct Latencies {
  double p50_s, p99_s, p999_s, max_s;
};

// Result of a checked replay: the peak of requested bytes, and the first fault or an empty string.
struct Checked {
  uint64_t peak_requested = 0;
  std::string fault;
};

// Work of a program between two steps. Without it, a short tape that is replayed again and again
// stays in the innermost cache, and the core predicts its branches by heart.
class OtherWork {
 public:
  void operator()() {
    for (size_t i = 0; i < memory_.size(); i += kLineWords) {
      memory_[i] += i;
    }
    for (int i = 0; i < kBranches; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      asm volatile("");  // or the compiler would choose without a branch
      if (random_ >> 63 != 0) {
        asm volatile("" : "+r"(sum_));
        sum_ += random_;
      }
    }
  }

 private:
  static constexpr size_t kWords = size_t{4} << 17;  // 4 MiB, more than the caches of one core hold
  static constexpr size_t kLineWords = 8;
  static constexpr int kBranches = 1 << 15;

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(kWords);
  uint64_t random_ = 1;
  uint64_t sum_ = 0;
};

// Every replay frees all of its allocations, so the next one starts in the same state. An exception
// of the allocator ends its thread's replay and leaves the call; live allocations then leak.
class Runner {
 public:
  // Takes one tape per thread, each with separate slots, and the `streams` that tapes index. Throws
  // std::invalid_argument, which names the first invalid operation. `allocator` outlives it.
  Runner(Allocator& allocator, std::vector<Tape> tapes, std::vector<Stream> streams, int device,
         Write write)
      : allocator_(allocator),
        tapes_(std::move(tapes)),
        streams_(std::move(streams)),
        device_(device),
        write_(write) {
    for (const Tape& tape : tapes_) {
      slots_.emplace_back(validated(tape));
    }
  }

  // Replays the only tape once, after other work; returns the seconds of the replay.
  double run_after_other_work() {
    other_work_();
    const Clock::time_point start = Clock::now();
    replay(0, [](auto&& operation) { operation(); });
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Replays `times` times; returns the seconds from the common start until the last thread ends.
  double run(int times) {
    std::vector<Clock::time_point> ends(tapes_.size());
    const Clock::time_point start = in_threads([&](size_t thread) {
      for (int i = 0; i < times; ++i) {
        replay(thread, [](auto&& operation) { operation(); });
      }
      ends[thread] = Clock::now();
    });
    return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) - start)
        .count();
  }

  // Latencies of single operations over all threads and `times` replays.
  Latencies latencies(int times) {
    std::vector<Histogram> histograms(tapes_.size());
    const Clock::time_point before = Clock::now();
    const uint64_t ticks_before = __rdtsc();
    in_threads([&](size_t thread) {
      for (int i = 0; i < times; ++i) {
        replay(thread, [&](auto&& operation) {
          const uint64_t start = __rdtsc();
          operation();
          histograms[thread].add(__rdtsc() - start);
        });
      }
    });
    const uint64_t ticks = __rdtsc() - ticks_before;
    const double tick_s =
        std::chrono::duration<double>(Clock::now() - before).count() / double(ticks);
    for (size_t i = 1; i < histograms.size(); ++i) {
      histograms[0].add(histograms[i]);
    }
    const Histogram& all = histograms[0];
    return {all.quantile(0.5) * tick_s, all.quantile(0.99) * tick_s, all.quantile(0.999) * tick_s,
            all.max() * tick_s};
  }

  // Replays once and checks every address: aligned to 256 B, and disjoint from all live
  // allocations. Calls `touch(ptr, bytes, stream)` for each allocation, from one thread at a time.
  // Throws std::runtime_error with the first fault.
  template <typename Touch>
  Checked check(Touch touch) {
    std::mutex mutex;
    std::map<uintptr_t, uint64_t> live;
    uint64_t requested = 0;
    Checked result;
    in_threads([&](size_t thread) {
      const Tape& tape = tapes_[thread];
      for (size_t i = 0; i < tape.size(); ++i) {
        const Op& op = tape[i];
        Slot& slot = slots_[thread][op.slot];
        if (op.kind == OpKind::kFree) {
          const std::lock_guard<std::mutex> lock(mutex);
          const auto found = live.find(reinterpret_cast<uintptr_t>(slot.ptr));
          requested -= found->second;
          live.erase(found);
        }
        perform(op, slot);
        if (op.kind == OpKind::kAllocate) {
          const std::lock_guard<std::mutex> lock(mutex);
          const std::string fault = fault_of(live, reinterpret_cast<uintptr_t>(slot.ptr), op.bytes);
          if (!fault.empty()) {
            result.fault = "operation " + std::to_string(i) + ": " + fault;
            throw std::runtime_error(result.fault);
          }
          live.emplace(reinterpret_cast<uintptr_t>(slot.ptr), op.bytes);
          requested += op.bytes;
          result.peak_requested = std::max(result.peak_requested, requested);
          touch(slot.ptr, op.bytes, slot.stream);
        }
      }
    });
    return result;
  }

  // Number of operations of the longest tape.
  size_t operations() const {
    size_t longest = 0;
    for (const Tape& tape : tapes_) {
      longest = std::max(longest, tape.size());
    }
    return longest;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    void* ptr = nullptr;
    Stream stream = 0;
  };

  // Number of slots of a tape; throws for one that is invalid or does not free all allocations.
  size_t validated(const Tape& tape) const {
    std::vector<uint64_t> sizes;  // bytes in each slot; 0 for an empty one
    size_t live = 0;
    for (size_t i = 0; i < tape.size(); ++i) {
      const Op& op = tape[i];
      const std::string where = "tape: operation " + std::to_string(i) + ": expected ";
      if (op.kind > OpKind::kWrite) {
        throw std::invalid_argument(where + "kind 0 to 3, got " +
                                    std::to_string(uint32_t(op.kind)));
      }
      if (op.stream >= streams_.size()) {
        throw std::invalid_argument(where + "a stream below " + std::to_string(streams_.size()) +
                                    ", got " + std::to_string(op.stream));
      }
      if (op.slot >= sizes.size()) {
        sizes.resize(size_t{op.slot} + 1);
      }
      const bool allocates = op.kind == OpKind::kAllocate;
      if ((sizes[op.slot] != 0) == allocates) {
        throw std::invalid_argument(where + (allocates ? "an empty slot, got one in use"
                                                       : "a slot in use, got an empty one"));
      }
      if (allocates && op.bytes == 0) {
        throw std::invalid_argument(where + "at least one byte, got 0");
      }
      if (op.kind == OpKind::kWrite && (op.bytes == 0 || op.bytes > sizes[op.slot])) {
        throw std::invalid_argument(where + "1 to " + std::to_string(sizes[op.slot]) +
                                    " bytes to write, got " + std::to_string(op.bytes));
      }
      if (allocates || op.kind == OpKind::kFree) {
        sizes[op.slot] = allocates ? op.bytes : 0;
        live += allocates ? 1 : size_t(-1);
      }
    }
    if (live != 0) {
      throw std::invalid_argument("tape: expected every allocation freed at its end, got " +
                                  std::to_string(live) + " left");
    }
    return sizes.size();
  }

  static std::string fault_of(const std::map<uintptr_t, uint64_t>& live, uintptr_t ptr,
                              uint64_t bytes) {
    if (ptr == 0) {
      return "expected an address, got none";
    }
    if (ptr % 256 != 0) {
      return "expected an address aligned to 256 B, got one that is not";
    }
    const auto after = live.lower_bound(ptr);
    const bool overlaps =
        (after != live.end() && after->first < ptr + bytes) ||
        (after != live.begin() && std::prev(after)->first + std::prev(after)->second > ptr);
    return overlaps ? "expected memory of its own, got some of a live allocation" : "";
  }

  void perform(const Op& op, Slot& slot) {
    switch (op.kind) {
      case OpKind::kAllocate:
        slot.stream = streams_[op.stream];
        slot.ptr = allocator_.allocate(op.bytes, {device_, slot.stream});
        return;
      case OpKind::kFree:
        allocator_.deallocate(slot.ptr, {device_, slot.stream});
        return;
      case OpKind::kRecord:
        allocator_.record_stream(slot.ptr, {device_, streams_[op.stream]});
        return;
      case OpKind::kWrite:
        write_(slot.ptr, op.bytes, streams_[op.stream]);
        return;
    }
  }

  template <typename Timed>
  void replay(size_t thread, Timed timed) {
    std::vector<Slot>& slots = slots_[thread];
    for (const Op& op : tapes_[thread]) {
      timed([&] { perform(op, slots[op.slot]); });
    }
  }

  // Runs work(thread) for every tape from a common start, in this thread if there is only one.
  // Rethrows the first error after all threads have ended.
  template <typename Work>
  Clock::time_point in_threads(Work work) {
    if (tapes_.size() == 1) {
      const Clock::time_point start = Clock::now();
      work(0);
      return start;
    }
    std::atomic<size_t> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::exception_ptr> errors(tapes_.size());
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < tapes_.size(); ++thread) {
      threads.emplace_back([&, thread] {
        ++ready;
        while (!go.load(std::memory_order_acquire)) {
          std::this_thread::yield();
        }
        try {
          work(thread);
        } catch (...) {
          errors[thread] = std::current_exception();
        }
      });
    }
    while (ready < tapes_.size()) {
      std::this_thread::yield();
    }
    const Clock::time_point start = Clock::now();
    go.store(true, std::memory_order_release);
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const std::exception_ptr& error : errors) {
      if (error) {
        std::rethrow_exception(error);
      }
    }
    return start;
  }

  Allocator& allocator_;
  const std::vector<Tape> tapes_;
  const std::vector<Stream> streams_;
  const int device_;
  const Write write_;
  std::vector<std::vector<Slot>> slots_;
  OtherWork other_work_;
};
