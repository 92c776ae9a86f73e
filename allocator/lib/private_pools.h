// The captures in progress, and the private pools of their CUDA graphs.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pooled_allocator.h"

namespace dropin {

constexpr PoolId kNoPool{0, 0};

// One thread at a time.
class PrivatePools {
 public:
  size_t captures() const { return ongoing_.size(); }

  // The pool that serves `stream` now.
  PoolId pool_of(Stream stream) const {
    const auto found = std::find_if(ongoing_.begin(), ongoing_.end(),
                                    [&](const Ongoing& one) { return one.takes(stream); });
    return found != ongoing_.end() ? found->pool : kNoPool;
  }

  // Whether a graph may still use the free memory of a pool.
  bool is_held(PoolId pool) const { return graphs_.count(pool) > 0; }

  void begin(PoolId pool, std::function<bool(Stream)> takes) {
    if (pool == kNoPool) {
      throw std::invalid_argument("pool: expected another than {0, 0}");
    }
    ongoing_.push_back({pool, std::move(takes)});
    ++graphs_[pool];
  }

  void end(PoolId pool) {
    const auto found = std::find_if(ongoing_.rbegin(), ongoing_.rend(),
                                    [&](const Ongoing& one) { return one.pool == pool; });
    require(found != ongoing_.rend(), pool, "that is being captured with");
    ongoing_.erase(std::next(found).base());
  }

  void release(PoolId pool) {
    const auto found = graphs_.find(pool);
    require(found != graphs_.end(), pool, "of a graph");
    if (--found->second == 0) {
      graphs_.erase(found);
    }
  }

 private:
  struct Ongoing {
    PoolId pool;
    std::function<bool(Stream)> takes;
  };

  static void require(bool holds, PoolId pool, const std::string& which) {
    if (!holds) {
      throw std::invalid_argument("pool: expected one " + which + ", got {" +
                                  std::to_string(pool.first) + ", " + std::to_string(pool.second) +
                                  "}");
    }
  }

  std::vector<Ongoing> ongoing_;
  std::map<PoolId, size_t> graphs_;
};

}  // namespace dropin
