// What a kernel does to have rows packed.
#pragma once

#include <cuda/atomic>

#include "operator.h"
#include "requests.h"

// A wait longer than several seconds ends the kernel with an error: the worker that should have
// packed the rows has been lost.
constexpr int64_t kPatienceCycles = int64_t{1} << 34;

template <class T>
using Told = cuda::atomic_ref<T, cuda::thread_scope_system>;

// Tells the host which rows are needed. So many `blocks` share this, the first ones of the grid.
__device__ inline void ask(const Gather& gather, const Requests& requests, int blocks) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t row = thread; row < gather.rows; row += int64_t{blocks} * blockDim.x) {
    const auto source = static_cast<uint32_t>(gather.pairs[row].x);
    const uint64_t asked = uint64_t{requests.launch} << 32 | source;
    Told<uint64_t>(requests.asked[row]).store(asked, cuda::memory_order_relaxed);
  }
}

// Copies the rows of a piece, which lie one after the other, to where they go.
__device__ inline void copy_piece(const Gather& gather, const Requests& requests, int64_t piece) {
  constexpr int kTurns = 4;
  const int64_t first = piece * requests.piece_rows;
  const int vectors = static_cast<int>(min(requests.piece_rows, gather.rows - first)) * kRowVectors;
  const int4* packed = reinterpret_cast<const int4*>(requests.staging) +
                       piece % requests.ring * requests.piece_rows * kRowVectors;
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

// Asks for all rows of the gather and copies them as they are packed, by the first `blocks` blocks
// of the grid, each of kBlock threads. A block may wait for rows that another one asks for: all of
// them should run at once, or beside kernels that end by themselves.
__device__ inline void ask_and_copy(const Gather& gather, const Requests& requests, int blocks) {
  ask(gather, requests, blocks);
  for (int64_t piece = blockIdx.x; piece < requests.pieces; piece += blocks) {
    if (threadIdx.x == 0) {
      const Told<const uint32_t> packed(requests.packed[piece].launch);
      const int64_t start = clock64();
      while (packed.load(cuda::memory_order_acquire) != requests.launch) {
        if (clock64() - start > kPatienceCycles) {
          __trap();
        }
      }
    }
    __syncthreads();
    copy_piece(gather, requests, piece);
    if (piece + requests.ring < requests.pieces) {  // its room is needed again
      __syncthreads();
      if (threadIdx.x == 0) {
        const Told<uint32_t> read(requests.read[piece].launch);
        read.store(requests.launch, cuda::memory_order_release);
      }
    }
  }
}
