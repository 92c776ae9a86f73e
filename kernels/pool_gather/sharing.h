// Divides every launch between the SMs, which read their rows in place, and the CPU, which packs
// the other rows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../common/memory.h"
#include "fastest_choice.h"
#include "operator.h"
#include "packer.h"

// Equal shares of the rows, and the numbers of them to try for the SMs. Steps are finer towards
// both ends, where one side only fills the gaps of the other.
constexpr int kShares = 32;
constexpr std::array kSharesOfSms = {0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 30, 32};

// Builds an SM gather for `rows` rows.
using MakeSmGather = std::function<Launch(int64_t rows)>;

class Sharing {
 public:
  // For launches of `rows` rows. Until divide() or tune(), the CPU packs all of them.
  Sharing(int64_t rows, const std::vector<int>& cpus, MakeSmGather make_sm_gather)
      : rows_(rows), make_sm_gather_(std::move(make_sm_gather)), packer_(rows, cpus) {}

  // Lets the SMs gather the first `by_sms` rows from now on.
  void divide(int64_t by_sms) { division_ = division(by_sms); }

  // Keeps the fastest of the divisions for these launches. The speed of either side depends on the
  // pool, the host and the other side.
  void tune(const std::vector<Gather>& sets) {
    std::vector<Division> divisions;
    for (const int share : kSharesOfSms) {
      divisions.push_back(division(rows_ * share / kShares));
    }
    const auto flushed = [this](const Gather& gather) { flush(gather); };
    const auto launched = [&](size_t choice, const Gather& gather, cudaStream_t stream) {
      division_ = divisions[choice];
      launch(gather, stream);
    };
    division_ = divisions[fastest_choice(divisions.size(), sets, flushed, launched)];
  }

  // Flushes the rows from the CPU's caches.
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

  Division division(int64_t by_sms) const {
    return {by_sms, by_sms > 0 ? make_sm_gather_(by_sms) : nullptr};
  }

  std::shared_ptr<CUstream_st> beside_ = new_stream();
  std::shared_ptr<CUevent_st> begun_ = new_event();
  std::shared_ptr<CUevent_st> gathered_ = new_event();
  int64_t rows_;
  MakeSmGather make_sm_gather_;
  Division division_;
  Packer packer_;
};
