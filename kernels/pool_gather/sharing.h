// Divides every launch between the SMs, which read their rows in place, and the CPU, which packs
// the others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "operator.h"
#include "packer.h"
#include "scratch.h"

constexpr int kShares = 32;  // in how many equal shares the rows are divided
constexpr int kTrials = 3;   // launches by which a division is judged
constexpr int kTriedAgain = 4;

// Makes what gathers so many rows by the SMs.
using OnSms = std::function<Launch(int64_t rows)>;

class Sharing {
 public:
  // For launches of `rows` rows; until told otherwise, the CPU packs all of them.
  Sharing(int64_t rows, const std::vector<int>& cpus, OnSms on_sms)
      : rows_(rows), on_sms_(std::move(on_sms)), packer_(rows, cpus) {}

  // From now on, the SMs gather so many of the rows, the first ones.
  void divide(int64_t by_sms) {
    by_sms_ = by_sms;
    gather_ = by_sms > 0 ? on_sms_(by_sms) : nullptr;
  }

  // Keeps the fastest division of those it tries on the first of these launches: every other share,
  // and those on both sides of the fastest of these. How fast either side is depends on the pool,
  // the host and what both sides do to each other, and a division may be slower than both of its
  // neighbours. Launches may differ more than divisions do, so the fastest few are tried again.
  void tune(const std::vector<Gather>& sets) {
    std::vector<Tried> tried;
    size_t set = 0;
    const auto try_share = [&](int share, int trials) {
      divide(rows_ * share / kShares);
      std::vector<double> seconds(static_cast<size_t>(trials));
      for (double& trial : seconds) {
        trial = time(sets[set++ % sets.size()]);
      }
      std::sort(seconds.begin(), seconds.end());
      tried.push_back({seconds[seconds.size() / 2], share});
    };
    divide(rows_ / 2);
    time(sets[set++]);  // the first launch of a kernel is slow
    for (int share = 0; share <= kShares; share += 2) {
      try_share(share, kTrials);
    }
    const int fastest = std::min_element(tried.begin(), tried.end())->share;
    for (const int share : {fastest - 1, fastest + 1}) {
      if (share > 0 && share < kShares) {
        try_share(share, kTrials);
      }
    }
    std::sort(tried.begin(), tried.end());
    const std::vector<Tried> fastest_few(tried.begin(), tried.begin() + kTriedAgain);
    tried.clear();
    for (const Tried& one : fastest_few) {
      try_share(one.share, 3 * kTrials);
    }
    divide(rows_ * std::min_element(tried.begin(), tried.end())->share / kShares);
  }

  void launch(const Gather& gather, cudaStream_t stream) {
    Gather by_sms = gather;
    by_sms.rows = by_sms_;
    Gather by_cpu = gather;
    by_cpu.pairs += by_sms.rows;
    by_cpu.rows -= by_sms.rows;
    check(cudaEventRecord(begun_.get(), stream), "begun");
    if (by_cpu.rows > 0) {
      packer_.fetch(by_cpu, stream);
    }
    if (by_sms.rows > 0) {
      check(cudaStreamWaitEvent(beside_.get(), begun_.get()), "begun");
      gather_(by_sms, beside_.get());
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
  struct Tried {
    double seconds;  // of the launch in the middle
    int share;       // of the SMs
    bool operator<(const Tried& other) const { return seconds < other.seconds; }
  };

  // Seconds of one launch with the division there is.
  double time(const Gather& gather) {
    packer_.flush(gather, trial_.get());
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
  int64_t by_sms_ = 0;
  OnSms on_sms_;
  Launch gather_;  // by the SMs; null where they have no rows
  Packer packer_;
};
