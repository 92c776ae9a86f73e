// Divides every launch between the SMs, which read their rows in place, and the CPU, which packs
// the others.
#pragma once

#include <algorithm>
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
constexpr int kTrials = 2;   // launches by which a division is judged, and again at the end
constexpr size_t kBest = 2;  // divisions that are left at the end

// Makes what gathers so many rows by the SMs.
using OnSms = std::function<Launch(int64_t rows)>;

// How many of the shares the SMs should gather: the fastest number of those that are tried, where
// `seconds(share)` does one launch. Begins where both sides would take equally long if neither
// slowed the other, and goes on in ever smaller steps: the difference between neighbours is less
// than that between two launches, and would end a climb by single steps too early. Other programs
// only ever make a launch longer, so that the shortest one counts.
inline int fastest_share(const std::function<double(int share)>& seconds) {
  std::map<int, double> shortest;
  const auto launch = [&](int share) {
    const double found = seconds(share);
    const auto known = shortest.emplace(share, found).first;
    known->second = std::min(known->second, found);
  };
  const auto tried = [&](int share) {
    if (share < 0 || share > kShares) {
      return std::numeric_limits<double>::infinity();
    }
    for (int trial = 0, count = shortest.count(share) > 0 ? 0 : kTrials; trial < count; ++trial) {
      launch(share);
    }
    return shortest.at(share);
  };
  const auto is_faster = [&](int one, int other) { return tried(one) < tried(other); };
  const double by_cpu = tried(0), by_sms = tried(kShares);
  int share = static_cast<int>(std::lround(kShares * by_cpu / (by_cpu + by_sms)));
  for (int step = kShares / 4; step > 0; step /= 2) {
    share = std::min({share, share - step, share + step}, is_faster);
  }
  std::vector<int> best;
  for (const auto& known : shortest) {
    best.push_back(known.first);
  }
  std::sort(best.begin(), best.end(), is_faster);
  best.resize(kBest);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::for_each(best.begin(), best.end(), launch);
  }
  return *std::min_element(best.begin(), best.end(), is_faster);
}

class Sharing {
 public:
  // For launches of `rows` rows; until told otherwise, the CPU packs all of them.
  Sharing(int64_t rows, const std::vector<int>& cpus, OnSms on_sms)
      : rows_(rows), on_sms_(std::move(on_sms)), packer_(rows, cpus) {}

  // From now on, the SMs gather so many of the rows, the first ones.
  void divide(int64_t by_sms) {
    if (by_sms != by_sms_) {
      gather_ = by_sms > 0 ? on_sms_(by_sms) : nullptr;
      by_sms_ = by_sms;
    }
  }

  // Keeps the fastest division of those it tries on the first of these launches: how fast either
  // side is depends on the pool, the host and what both sides do to each other.
  void tune(const std::vector<Gather>& sets) {
    size_t set = 0;
    const auto seconds = [&](int share) {
      divide(rows_ * share / kShares);
      return time(sets[set++ % sets.size()]);
    };
    seconds(kShares / 2);  // the first launch of a kernel is slow
    divide(rows_ * fastest_share(seconds) / kShares);
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
