// Several GPUs that work on one launch, in the order of the stream of the first one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "on_gpu.h"
#include "operation.h"

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
  std::shared_ptr<CUstream_st> stream;  // null for the caller's
  std::shared_ptr<CUevent_st> done;
};

// How often a neighbour does its share in a launch, so that it is not done first.
constexpr int kNeighbourTurns = 2;

class Together {
 public:
  Together(const std::vector<Part>& parts, const Resources& resources) {
    const OnGpu first(0);
    begun_ = new_event();
    for (const Part& part : parts) {
      lanes_.emplace_back(part, resources);
      has_others_ = has_others_ || lanes_.back().stream != nullptr;
    }
  }

  // Launches the parts of a set; `caller`, a stream of the first GPU, is done when all of them are
  // but neighbours.
  void launch(cudaStream_t caller, size_t set) const {
    cudaGetLastError();  // whatever failed before is not this launch's
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
