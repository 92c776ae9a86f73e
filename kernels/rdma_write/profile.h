// Time of the posting threads, divided into calls of the provider and the code between them.
#pragma once

#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <thread>

// Parts of a transfer in ticks of the timestamp counter, averaged over threads.
struct Parts {
  double post = 0;     // accepted posts
  double refused = 0;  // posts refused because the provider's queue was full
  double poll = 0;     // polls that found completions
  double empty = 0;    // polls that found none
  double between = 0;  // code between these calls
  double clock = 0;    // reading the timestamp counter around them

  // Seconds per write of a transfer that took `ticks` and `seconds`. `rest_time` is the remainder:
  // starting threads, writing the last page, and waiting for the client's report.
  std::map<std::string, double> per_write(double ticks, double seconds, uint64_t writes) const {
    const double scale = seconds / ticks / static_cast<double>(writes);
    const double rest = ticks - post - refused - poll - empty - between - clock;
    return {{"post_time", post * scale},   {"refused_time", refused * scale},
            {"poll_time", poll * scale},   {"empty_time", empty * scale},
            {"own_time", between * scale}, {"rest_time", std::max(0.0, rest) * scale}};
  }
};

// Times the calls of one endpoint. It replaces the provider's functions, as libfabric's hooks do,
// so that an endpoint without a profile runs none of this code. The endpoint's thread writes it,
// others read it after that thread has ended. It outlives the last call.
class alignas(64) Profile : fi_ops_rma, fi_ops_cq, fi_ops_cntr {
 public:
  // `cntr` is the counter of completed writes, or null.
  void attach(fid_ep* ep, fid_cq* cq, fid_cntr* cntr) {
    rma_ = ep->rma;
    cq_ = cq->ops;
    static_cast<fi_ops_rma&>(*this) = *rma_;
    static_cast<fi_ops_cq&>(*this) = *cq_;
    fi_ops_rma::write = timed_write;
    fi_ops_rma::writemsg = timed_writemsg;
    fi_ops_cq::read = timed_read;
    ep->rma = this;
    cq->ops = this;
    if (cntr) {
      cntr_ = cntr->ops;
      static_cast<fi_ops_cntr&>(*this) = *cntr_;
      fi_ops_cntr::read = timed_count;
      cntr->ops = this;
    }
  }

  // Resets all times. Call before a transfer, while no thread runs.
  void reset() {
    times_ = {};
    times_.reading = clock_ticks();
  }

  // Parts of the time since the reset, for all threads of these endpoints.
  static Parts parts(std::span<Profile* const> profiles) {
    struct Span {
      uint64_t first;
      uint64_t last;
    };
    std::map<std::thread::id, Span> threads;
    Times all;
    for (const Profile* profile : profiles) {
      const Times& times = profile->times_;
      if (times.first == 0) {
        continue;
      }
      all.reading = times.reading;
      all.post += times.post;
      all.refused += times.refused;
      all.poll += times.poll;
      all.empty += times.empty;
      const auto found = threads.try_emplace(times.thread, times.first, times.last).first;
      found->second.first = std::min(found->second.first, times.first);
      found->second.last = std::max(found->second.last, times.last);
    }
    double within = 0;
    for (const auto& [_, thread] : threads) {
      within += static_cast<double>(thread.last - thread.first);
    }
    const double count = std::max<double>(1, static_cast<double>(threads.size()));
    Parts sum;
    // Each call has two readings of the clock: one inside its interval, one between intervals.
    const auto without_clock = [&](const Calls& calls) {
      const auto ticks = static_cast<double>(calls.ticks);
      const double clock = std::min(ticks, static_cast<double>(calls.count) * all.reading);
      sum.clock += 2 * clock / count;
      within -= ticks + clock;
      return (ticks - clock) / count;
    };
    sum.post = without_clock(all.post);
    sum.refused = without_clock(all.refused);
    sum.poll = without_clock(all.poll);
    sum.empty = without_clock(all.empty);
    sum.between = std::max(0.0, within) / count;
    return sum;
  }

 private:
  struct Calls {
    uint64_t count = 0;
    uint64_t ticks = 0;

    void operator+=(const Calls& other) {
      count += other.count;
      ticks += other.ticks;
    }
  };
  struct Times {
    Calls post;
    Calls refused;
    Calls poll;
    Calls empty;
    uint64_t first = 0;  // 0 without any call
    uint64_t last = 0;
    std::thread::id thread;
    double reading = 0;  // duration of one reading of the clock, in ticks
  };

  void add(Calls& kind, uint64_t begin) {
    const uint64_t end = __rdtsc();
    ++kind.count;
    kind.ticks += end - begin;
    if (times_.first == 0) {
      times_.first = begin;
      times_.thread = std::this_thread::get_id();
    }
    times_.last = end;
  }

  static ssize_t timed_write(fid_ep* ep, const void* buffer, size_t bytes, void* descriptor,
                             fi_addr_t peer, uint64_t address, uint64_t key, void* context) {
    auto& profile = *static_cast<Profile*>(ep->rma);
    const uint64_t begin = __rdtsc();
    const ssize_t status =
        profile.rma_->write(ep, buffer, bytes, descriptor, peer, address, key, context);
    profile.add(status == 0 ? profile.times_.post : profile.times_.refused, begin);
    return status;
  }

  static ssize_t timed_writemsg(fid_ep* ep, const fi_msg_rma* message, uint64_t flags) {
    auto& profile = *static_cast<Profile*>(ep->rma);
    const uint64_t begin = __rdtsc();
    const ssize_t status = profile.rma_->writemsg(ep, message, flags);
    profile.add(status == 0 ? profile.times_.post : profile.times_.refused, begin);
    return status;
  }

  static uint64_t timed_count(fid_cntr* cntr) {
    auto& profile = *static_cast<Profile*>(cntr->ops);
    const uint64_t begin = __rdtsc();
    const uint64_t count = profile.cntr_->read(cntr);
    const bool is_more = count != profile.counted_;
    profile.counted_ = count;
    profile.add(is_more ? profile.times_.poll : profile.times_.empty, begin);
    return count;
  }

  static ssize_t timed_read(fid_cq* cq, void* entries, size_t count) {
    auto& profile = *static_cast<Profile*>(cq->ops);
    const uint64_t begin = __rdtsc();
    const ssize_t found = profile.cq_->read(cq, entries, count);
    profile.add(found > 0 ? profile.times_.poll : profile.times_.empty, begin);
    return found;
  }

  // Duration of one reading of the clock: the median, because some are interrupted.
  static double clock_ticks() {
    std::array<uint64_t, 1001> ticks;
    for (uint64_t& duration : ticks) {
      const uint64_t begin = __rdtsc();
      duration = __rdtsc() - begin;
    }
    std::ranges::nth_element(ticks, ticks.begin() + ticks.size() / 2);
    return static_cast<double>(ticks[ticks.size() / 2]);
  }

  fi_ops_rma* rma_ = nullptr;
  fi_ops_cq* cq_ = nullptr;
  fi_ops_cntr* cntr_ = nullptr;
  uint64_t counted_ = 0;
  Times times_;
};
