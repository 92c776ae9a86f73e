// The transfer to the host that every variant does: one copy, as long as all pieces together.
#pragma once

#include "../common/moves/events.h"
#include "../common/moves/transfer.h"

// Throws std::invalid_argument unless the pieces move to the device and there is memory for the
// copy.
inline void require_both_ways(const Pieces& pieces) {
  if (!pieces.to_device || pieces.landing == nullptr || pieces.source == nullptr) {
    throw std::invalid_argument("landing: expected pieces to the device, a source and a landing");
  }
}

inline void copy_out(const Pieces& pieces, cudaStream_t stream) {
  check(cudaMemcpyAsync(pieces.landing, pieces.source, static_cast<size_t>(pieces.bytes()),
                        cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
}

// All pieces as one copy: their places are in the same order on both sides, without gaps.
inline void copy_in(const Pieces& pieces, cudaStream_t stream) {
  check(cudaMemcpyAsync(pieces.device, pieces.host, static_cast<size_t>(pieces.bytes()),
                        cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
}
