// A trial of several ways to do a launch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "../common/memory.h"
#include "operator.h"

constexpr int kFirstRoundTrials = 3;  // launches per choice in the first round of trials

// The fastest of `choices` choices for the launches of `sets`. A trial is `launch(choice, gather,
// stream)` after `flush(gather)`. Launches may differ more than choices do, so choices take turns:
// a slow moment meets all of them. After each round, at least the slower half drops out.
template <class Flush, class Launches>
size_t fastest_choice(size_t choices, const std::vector<Gather>& sets, const Flush& flush,
                      const Launches& launch) {
  const std::shared_ptr<CUstream_st> stream = new_stream();
  size_t set = 0;
  const auto seconds = [&](size_t choice) {
    const Gather& gather = sets[set++ % sets.size()];
    flush(gather);
    const auto begin = std::chrono::steady_clock::now();
    launch(choice, gather, stream.get());
    check(cudaStreamSynchronize(stream.get()), "trial");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<std::vector<double>> times(choices);  // of each choice, sorted after each round
  const auto median = [&](size_t choice) { return times[choice][times[choice].size() / 2]; };
  std::vector<size_t> left(choices);
  std::iota(left.begin(), left.end(), size_t{0});
  seconds(choices - 1);  // the first launch of a kernel is slow
  for (int trials = kFirstRoundTrials; left.size() > 1; ++trials) {
    for (int trial = 0; trial < trials; ++trial) {
      for (const size_t choice : left) {
        times[choice].push_back(seconds(choice));
      }
    }
    for (const size_t choice : left) {
      std::sort(times[choice].begin(), times[choice].end());
    }
    std::sort(left.begin(), left.end(),
              [&](size_t one, size_t other) { return median(one) < median(other); });
    left.resize(left.size() / 2);
  }
  return left.front();
}
