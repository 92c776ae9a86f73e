// A gather of scattered pieces by at most GATHER_BLOCKS thread blocks, and one copy out at once.
#pragma once

#include "../common/moves/list_gather.h"
#include "copies.h"

#ifndef GATHER_BLOCKS
#define GATHER_BLOCKS 1024
#endif

class GatherAtOnce : public ListGather {
 public:
  explicit GatherAtOnce(const Pieces& moved) : ListGather(moved, GATHER_BLOCKS) {
    require_both_ways(pieces);
  }

  void launch(cudaStream_t stream) override {
    const cudaStream_t side = side_.fork(stream);
    ListGather::launch(stream);
    copy_out(pieces, side);
    side_.join(stream);
  }

 private:
  const SideStream side_;
};
