// Several GPUs that work on one launch, in the order of the stream of the first one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "operation.h"

// While it lives, this thread's calls go to another GPU.
class OnGpu {
 public:
  explicit OnGpu(int gpu) {
    check(cudaGetDevice(&before_), "current GPU");
    check(cudaSetDevice(gpu), "GPU");
  }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

inline std::shared_ptr<CUevent_st> new_event() {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "event");
  return {made, cudaEventDestroy};
}

inline std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
  return {made, cudaStreamDestroy};
}

// A share in the launches of all sets: its pairs in set s begin s * set_rows behind those of the
// first one, and sources[s] is the source row of the pair there.
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

// A part with what moves it. The first GPU's own share runs on the caller's stream, any other one,
// and a neighbour, on a stream of its GPU.
struct Lane {
  explicit Lane(const Part& of) : part(of) {
    const OnGpu there(part.share.gpu);
    move = prepare(part.share);
    if (part.share.gpu != 0 || part.share.is_neighbour) {
      stream = new_stream();
      done = new_event();
    }
  }

  Part part;
  Move move;
  std::shared_ptr<CUstream_st> stream;  // null for the caller's
  std::shared_ptr<CUevent_st> done;
};

// How often a neighbour does its share in a launch, so that it is not done first.
constexpr int kNeighbourTurns = 2;

class Together {
 public:
  explicit Together(const std::vector<Part>& parts) {
    const OnGpu first(0);
    begun_ = new_event();
    for (const Part& part : parts) {
      lanes_.emplace_back(part);
      has_others_ = has_others_ || lanes_.back().stream != nullptr;
    }
  }

  // Launches the parts of a set; `caller`, a stream of the first GPU, is done when all of them are
  // but neighbours.
  void launch(cudaStream_t caller, size_t set) const {
    if (has_others_) {
      check(cudaEventRecord(begun_.get(), caller), "begun");
    }
    for (const Lane& lane : lanes_) {  // other GPUs hear of it late, so they are told first
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

  // `caller` waits for what neighbours have left.
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
  bool has_others_ = false;
};
