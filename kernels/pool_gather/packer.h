// Threads pack scattered rows into page-locked staging memory; the copy engine moves what is
// packed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "operator.h"
#include "packed_rows.h"
#include "pairs.h"
#include "scratch.h"
#include "workers.h"

#ifndef MOST_WORKERS  // a flag in study.yaml
#define MOST_WORKERS 64
#endif

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kParts = 1024;     // of a launch, unless they get too small or too large
constexpr int64_t kFewestRows = 16;  // of a part
constexpr size_t kInFlight = 2;  // copies of packed rows, so that the copy engine always has one

// Unlike clflush, one of these need not wait for the one before. Every x86 server that PCIe 4 came
// with has it.
__attribute__((target("clflushopt"))) inline void flush_row(const uint8_t* row) {
  const auto line = [row](int byte) { return const_cast<uint8_t*>(row + byte); };
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    _mm_clflushopt(line(byte));
  }
  _mm_clflushopt(line(kRowBytes - 1));
}

class Packer {
 public:
  // For launches of at most `rows` rows.
  Packer(int64_t rows, const std::vector<int>& cpus)
      : pairs_(rows),
        staging_(page_locked<uint8_t>(static_cast<size_t>(rows * kRowBytes))),
        parts_(rows, std::clamp(rows / kParts / kGroup * kGroup, kFewestRows, kPartRows)),
        cpus_(worker_cpus(cpus, MOST_WORKERS)),
        workers_(cpus_) {}

  // Enqueues the copy of the pairs to the host. pack() has to follow, with the same gather.
  void fetch(const Gather& gather, cudaStream_t stream) {
    pairs_.fetch(gather.pairs, gather.rows, stream);
  }

  // Packs the rows, and enqueues their copies as they are packed. Returns when all are enqueued.
  void pack(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(cpus_);
    // Where this throws, they finish what they do before anything they use is freed.
    start(gather, [this, gather] {
      pack_parts<kRowBytes>(staging_.get(), parts_, kRowBytes,
                            [&](int64_t row) { return source_bytes(gather, pairs_[row].x); });
    });
    pairs_.await_others();
    send_parts(gather, stream);
    workers_.finish();
  }

  // Flushes the rows from the CPU's caches, where rows of a pool in use mostly are not.
  void flush(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(cpus_);
    fetch(gather, stream);
    start(gather, [this, gather] {
      for (int64_t part = parts_.take(); part < parts_.count(); part = parts_.take()) {
        for (int64_t row = parts_.first_row(part); row < parts_.end_row(part); ++row) {
          flush_row(source_bytes(gather, pairs_[row].x));
        }
      }
      _mm_mfence();
    });
    pairs_.await_others();
    workers_.finish();
  }

 private:
  // Has each thread do `work` once, on parts of this launch, as soon as its first pairs are here.
  void start(const Gather& gather, std::function<void()> work) {
    workers_.finish();  // where the launch before has failed
    // Pairs come behind all copies of the launch before: its staging memory is free.
    pairs_.await_first();
    parts_.begin(gather.rows);
    workers_.start(std::move(work));
  }

  // Between two copies the copy engine pauses, so they should be few. What is packed while some are
  // on their way is sent at once: copies get longer for as long as packing is the faster of the
  // two.
  void send_parts(const Gather& gather, cudaStream_t stream) {
    int64_t first = 0;
    for (size_t copy = 0; first < parts_.count(); ++copy) {
      const cudaEvent_t sent = sent_[copy % kInFlight].get();
      check(cudaEventSynchronize(sent), "packed rows");
      parts_.await_packed(first);
      int64_t last = first;
      while (last + 1 < parts_.count() && parts_.is_packed(last + 1)) {
        ++last;
      }
      send_rows(gather, parts_.first_row(first), parts_.end_row(last), stream);
      check(cudaEventRecord(sent, stream), "packed rows");
      first = last + 1;
    }
  }

  // One copy for all rows whose destinations follow each other.
  void send_rows(const Gather& gather, int64_t first, int64_t end, cudaStream_t stream) {
    while (first < end) {
      int64_t next = first + 1;
      while (next < end && pairs_[next].y == pairs_[next - 1].y + 1) {
        ++next;
      }
      check(cudaMemcpyAsync(destination_bytes(gather, pairs_[first].y),
                            staging_.get() + first * kRowBytes, (next - first) * kRowBytes,
                            cudaMemcpyHostToDevice, stream),
            "packed rows");
      first = next;
    }
  }

  Pairs pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  Parts parts_;
  std::array<std::shared_ptr<CUevent_st>, kInFlight> sent_{new_event(), new_event()};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
