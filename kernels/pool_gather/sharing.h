// Divides every launch between the SMs, which read their rows in place, and the CPU, which packs
// the others.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "operator.h"
#include "packer.h"
#include "scratch.h"

constexpr int kShares = 16;  // in how many equal shares the rows are divided
constexpr int kTrials = 3;   // launches by which a division is judged

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

  // Keeps the fastest division of those it tries on the first of these launches: how fast either
  // side is depends on the pool, the host and what both sides do to each other. It begins where
  // both would take equally long if neither slowed the other, and goes on to either side for as
  // long as that is faster.
  void tune(const std::vector<Gather>& sets) {
    std::map<int, double> seconds;  // by share of the SMs
    size_t set = 0;
    const auto tried = [&](int share) {
      if (share < 0 || share > kShares) {
        return std::numeric_limits<double>::infinity();
      }
      if (const auto found = seconds.find(share); found != seconds.end()) {
        return found->second;
      }
      divide(rows_ * share / kShares);
      std::array<double, kTrials> trials{};
      for (double& trial : trials) {
        trial = time(sets[set++ % sets.size()]);
      }
      std::sort(trials.begin(), trials.end());
      return seconds[share] = trials[kTrials / 2];
    };
    divide(rows_ / 2);
    time(sets[set++]);  // the first launch of a kernel is slow
    const double by_cpu = tried(0), by_sms = tried(kShares);
    int share = static_cast<int>(std::lround(kShares * by_cpu / (by_cpu + by_sms)));
    for (const int step : {-1, 1}) {
      while (tried(share + step) < tried(share)) {
        share += step;
      }
    }
    const auto fastest = std::min_element(
        seconds.begin(), seconds.end(),
        [](const auto& one, const auto& other) { return one.second < other.second; });
    divide(rows_ * fastest->first / kShares);
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
