// Launches by several GPUs, in the order of a stream of the first one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "on_gpu.h"
#include "operation.h"

// A share in the launches of all sets. In set s, its pairs begin s * set_rows behind those of the
// first set, and sources[s] is the source row of its first pair.
struct Part {
  Share share;
  std::vector<int64_t> sources;
  int64_t set_rows;

  Share in(size_t set) const {
    Share found = share;
    found.pairs += static_cast<int64_t>(set) * set_rows;
    found.source = sources.at(set);
    return found;
  }
};

// A part and its prepared move. The first GPU's share runs on the caller's stream; other shares and
// neighbours run on a stream of their GPU.
struct Lane {
  Lane(const Part& of, const Resources& resources) : part(of) {
    const OnGpu there(part.share.gpu);
    move = prepare(part.share, resources);
    if (part.share.gpu != 0 || part.share.is_neighbour) {
      stream = new_stream();
      done = new_event();
    }
  }

  Part part;
  Move move;
  std::shared_ptr<CUstream_st> stream;  // null for the caller's stream
  std::shared_ptr<CUevent_st> done;
};

// Repetitions of a neighbour's share in a launch, so that the neighbour ends last.
constexpr int kNeighbourTurns = 2;

class Together {
 public:
  Together(const std::vector<Part>& parts, const Resources& resources) {
    const OnGpu first(0);
    begun_ = new_event();
    for (const Part& part : parts) {
      lanes_.emplace_back(part, resources);
      has_remote_ = has_remote_ || lanes_.back().stream != nullptr;
    }
    sets_ = parts.empty() ? 2 : parts.front().sources.size();
  }

  // Launches the first set, or the next of the others; these come in turns.
  void launch(cudaStream_t caller) {
    const size_t set = launched_ == 0 ? 0 : 1 + (launched_ - 1) % (sets_ - 1);
    ++launched_;
    launch(caller, set);
  }

  // Lets the next launch be the first.
  void restart() { launched_ = 0; }

  // Launches the parts of a set. `caller`, a stream of the first GPU, then waits for all of them
  // but neighbours.
  void launch(cudaStream_t caller, size_t set) const {
    cudaGetLastError();  // drops errors of earlier calls
    if (has_remote_) {
      check(cudaEventRecord(begun_.get(), caller), "begun");
    }
    // Remote GPUs first: their launch latency is higher.
    for (const Lane& lane : lanes_) {
      if (lane.stream != nullptr) {
        const OnGpu there(lane.part.share.gpu);
        check(cudaStreamWaitEvent(lane.stream.get(), begun_.get(), 0), "begun");
        for (int turn = 0; turn < (lane.part.share.is_neighbour ? kNeighbourTurns : 1); ++turn) {
          lane.move(lane.part.in(set), lane.stream.get());
        }
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(lane.done.get(), lane.stream.get()), "done");
      }
    }
    for (const Lane& lane : lanes_) {
      if (lane.stream == nullptr) {
        lane.move(lane.part.in(set), caller);
        check(cudaGetLastError(), "launch");
      }
    }
    join(caller, false);
  }

  // Lets `caller` wait for the neighbours.
  void rejoin(cudaStream_t caller) const { join(caller, true); }

 private:
  void join(cudaStream_t caller, bool neighbours) const {
    for (const Lane& lane : lanes_) {
      if (lane.stream != nullptr && lane.part.share.is_neighbour == neighbours) {
        check(cudaStreamWaitEvent(caller, lane.done.get(), 0), "done");
      }
    }
  }

  std::shared_ptr<CUevent_st> begun_;
  std::vector<Lane> lanes_;
  bool has_remote_ = false;
  size_t sets_ = 2;
  size_t launched_ = 0;
};
