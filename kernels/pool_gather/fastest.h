// Which of several ways to do a launch is the fastest, by trial.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "operator.h"
#include "scratch.h"

constexpr int kTrials = 3;  // launches by which a choice is judged at first

// The fastest of so many `choices` for the launches of `sets`: `launch(choice, gather, stream)`
// after `flush(gather)`. Launches may differ more than choices do: choices take turns, so that a
// slow moment meets all of them, and at least the slower half drops out before the others are tried
// again.
template <class Flush, class Launches>
size_t fastest(size_t choices, const std::vector<Gather>& sets, const Flush& flush,
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
  std::vector<std::vector<double>> times(choices);  // of each choice, in order
  const auto median = [&](size_t choice) { return times[choice][times[choice].size() / 2]; };
  std::vector<size_t> left(choices);
  std::iota(left.begin(), left.end(), size_t{0});
  seconds(choices - 1);  // the first launch of a kernel is slow
  for (int trials = kTrials; left.size() > 1; ++trials) {
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
