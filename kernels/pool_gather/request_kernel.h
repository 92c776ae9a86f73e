// The kernel's side of packing on request: it requests rows and copies them once they are packed.
#pragma once

#include <cuda/atomic>

#include "operator.h"
#include "request_packer.h"

// A block that waits longer, several seconds, ends the kernel with an error: the worker that should
// have packed the rows is lost.
constexpr int64_t kPatienceCycles = int64_t{1} << 34;

template <class T>
using SystemAtomic = cuda::atomic_ref<T, cuda::thread_scope_system>;

// Requests all rows of the gather, by the first `blocks` blocks of the grid.
__device__ inline void request_rows(const Gather& gather, const Requests& requests, int blocks) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t row = thread; row < gather.rows; row += int64_t{blocks} * blockDim.x) {
    const auto source = static_cast<uint32_t>(gather.pairs[row].x);
    const uint64_t request = uint64_t{requests.launch_id} << 32 | source;
    SystemAtomic<uint64_t>(requests.rows[row]).store(request, cuda::memory_order_relaxed);
  }
}

// Copies the packed rows of a piece, which are consecutive, to their destinations.
__device__ inline void copy_piece(const Gather& gather, const Requests& requests, int64_t piece) {
  constexpr int kTurns = 4;
  const int64_t first = piece * requests.piece_rows;
  const int vectors = static_cast<int>(min(requests.piece_rows, gather.rows - first)) * kRowVectors;
  const int4* packed = reinterpret_cast<const int4*>(requests.staging) +
                       piece % requests.ring_pieces * requests.piece_rows * kRowVectors;
  for (int begin = threadIdx.x; begin < vectors; begin += kTurns * kBlock) {
    int4 held[kTurns];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = begin + turn * kBlock;
      if (i < vectors) {
        held[turn] = __ldcs(packed + i);
      }
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = begin + turn * kBlock;
      if (i < vectors) {
        const int row = i / kRowVectors;
        int4* dst = destination_vectors(gather, gather.pairs[first + row].y);
        __stcs(dst + i - row * kRowVectors, held[turn]);
      }
    }
  }
}

// Requests all rows of the gather and copies them as they are packed, by the first `blocks` blocks
// of the grid, each of kBlock threads. A block may wait for rows that another block requests, so
// all of them must be resident, or follow kernels that end by themselves.
__device__ inline void request_and_copy(const Gather& gather, const Requests& requests,
                                        int blocks) {
  request_rows(gather, requests, blocks);
  for (int64_t piece = blockIdx.x; piece < requests.pieces; piece += blocks) {
    if (threadIdx.x == 0) {
      const SystemAtomic<const uint32_t> packed(requests.packed[piece].launch_id);
      const int64_t start = clock64();
      while (packed.load(cuda::memory_order_acquire) != requests.launch_id) {
        if (clock64() - start > kPatienceCycles) {
          __trap();
        }
      }
    }
    __syncthreads();
    copy_piece(gather, requests, piece);
    if (piece + requests.ring_pieces < requests.pieces) {  // a later piece needs the ring slot
      __syncthreads();
      if (threadIdx.x == 0) {
        const SystemAtomic<uint32_t> read(requests.read[piece].launch_id);
        read.store(requests.launch_id, cuda::memory_order_release);
      }
    }
  }
}
