// Divides every launch between the SMs, which read their rows in place, and the CPU, which packs
// the others.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "operator.h"
#include "packer.h"
#include "scratch.h"

// In how many equal shares the rows are divided, and how many of them the SMs may get. The steps
// are finer towards both ends, where one side does little more than fill what the other leaves.
constexpr int kShares = 32;
constexpr std::array kSharesOfSms = {0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 30, 32};
constexpr int kTrials = 3;  // launches by which a division is judged at first

// Makes what gathers so many rows by the SMs.
using OnSms = std::function<Launch(int64_t rows)>;

class Sharing {
 public:
  // For launches of `rows` rows; until they are divided, the CPU packs all of them.
  Sharing(int64_t rows, const std::vector<int>& cpus, OnSms on_sms)
      : rows_(rows), on_sms_(std::move(on_sms)), packer_(rows, cpus) {}

  // From now on, the SMs gather so many of the rows, the first ones.
  void divide(int64_t by_sms) { division_ = division(by_sms); }

  // Keeps the fastest of the divisions it tries on these launches. How fast either side is depends
  // on the pool, the host and what both sides do to each other. Launches may differ more than
  // divisions do: divisions take turns, so that a slow moment meets all of them, and at least the
  // slower half drops out before the others are tried again.
  void tune(const std::vector<Gather>& sets) {
    std::vector<Tried> left;
    for (const int share : kSharesOfSms) {
      left.push_back({division(rows_ * share / kShares), {}});
    }
    division_ = left.back().division;
    size_t set = 0;
    time(sets[0]);  // the first launch of a kernel is slow
    for (int trials = kTrials; left.size() > 1; ++trials) {
      for (int trial = 0; trial < trials; ++trial) {
        for (Tried& one : left) {
          division_ = one.division;
          one.seconds.push_back(time(sets[++set % sets.size()]));
        }
      }
      for (Tried& one : left) {
        std::sort(one.seconds.begin(), one.seconds.end());
      }
      std::sort(left.begin(), left.end(),
                [](const Tried& one, const Tried& other) { return one.median() < other.median(); });
      left.resize(left.size() / 2);
    }
    division_ = left.front().division;
  }

  // Flushes all rows from the CPU's caches.
  void flush(const Gather& gather) { packer_.flush(gather); }

  void launch(const Gather& gather, cudaStream_t stream) {
    Gather by_sms = gather;
    by_sms.rows = division_.by_sms;
    Gather by_cpu = gather;
    by_cpu.pairs += by_sms.rows;
    by_cpu.rows -= by_sms.rows;
    check(cudaEventRecord(begun_.get(), stream), "begun");
    if (by_cpu.rows > 0) {
      packer_.fetch(by_cpu, stream);
    }
    if (by_sms.rows > 0) {
      check(cudaStreamWaitEvent(beside_.get(), begun_.get()), "begun");
      division_.gather(by_sms, beside_.get());
      check(cudaEventRecord(gathered_.get(), beside_.get()), "gathered");
    }
    if (by_cpu.rows > 0) {
      packer_.pack(by_cpu, stream);
    }
    if (by_sms.rows > 0) {
      check(cudaStreamWaitEvent(stream, gathered_.get()), "gathered");
    }
  }

 private:
  struct Division {
    int64_t by_sms = 0;
    Launch gather;  // by the SMs; null where they have no rows
  };

  struct Tried {
    Division division;
    std::vector<double> seconds;  // of its launches, in order
    double median() const { return seconds[seconds.size() / 2]; }
  };

  Division division(int64_t by_sms) const {
    return {by_sms, by_sms > 0 ? on_sms_(by_sms) : nullptr};
  }

  // Seconds of one launch with the division there is.
  double time(const Gather& gather) {
    flush(gather);
    const auto begin = std::chrono::steady_clock::now();
    launch(gather, trial_.get());
    check(cudaStreamSynchronize(trial_.get()), "trial");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::shared_ptr<CUstream_st> trial_ = new_stream();
  std::shared_ptr<CUstream_st> beside_ = new_stream();
  std::shared_ptr<CUevent_st> begun_ = new_event();
  std::shared_ptr<CUevent_st> gathered_ = new_event();
  int64_t rows_;
  OnSms on_sms_;
  Division division_;
  Packer packer_;
};
