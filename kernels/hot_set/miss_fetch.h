// The kernel's side of packing on request: it requests missing rows, copies those that the CPU has
// packed, and reads the others in place.
#pragma once

#include <cuda/atomic>

#include "../common/loads_first.h"
#include "miss_requests.h"

// A block that waits longer for a piece, about a millisecond, reads its rows in place: a worker has
// lost its CPU, or is gone.
#ifndef PATIENCE_CYCLES  // a flag of tests
#define PATIENCE_CYCLES 2000000
#endif
constexpr int64_t kPatienceCycles = PATIENCE_CYCLES;

template <class T>
using SystemAtomic = cuda::atomic_ref<T, cuda::thread_scope_system>;

// The missing rows of a launch, in device memory.
struct Misses {
  const uint8_t* pool;       // pinned host memory
  uint8_t* buffer;           // device memory
  uint32_t* pool_rows;       // [max_rows]
  uint32_t* buffer_rows;     // [max_rows] where each goes
  uint32_t* end;             // number of them
  uint32_t* rows_in_place;   // the first ones, which no CPU packs
  uint32_t* claimed;         // requests claimed to be read in place until the CPU is met
  uint32_t* claimed_by_cpu;  // the CPU has claimed requests from here on
};

__device__ inline void post(const MissRequests& requests, LaunchValue* value, uint32_t number) {
  SystemAtomic<uint64_t>(value->word)
      .store(tagged(requests.launch_id, number), cuda::memory_order_relaxed);
}

__device__ inline void request_row(const MissRequests& requests, int64_t index, uint32_t pool_row) {
  SystemAtomic<uint64_t>(requests.rows[index])
      .store(tagged(requests.launch_id, pool_row), cuda::memory_order_relaxed);
}

// Sets the requests that are read in place, [0, in_place), and those that the CPU packs,
// [in_place, end). These need not be visible to the CPU yet: each carries its launch.
__device__ inline void set_range(const Misses& misses, const MissRequests& requests,
                                 uint32_t in_place, uint32_t end) {
  *misses.rows_in_place = in_place;
  *misses.end = end;
  *misses.claimed = 0;
  *misses.claimed_by_cpu = end;
  if (requests.rows != nullptr) {
    post(requests, requests.first, in_place);
    post(requests, requests.end, end);
  }
}

template <int kRowBytes>
struct MissFetch {
  static constexpr int kVectors = kRowBytes / 16;

  const Misses& misses;
  const MissRequests& requests;

  __device__ const int4* source(int64_t index) const {
    return reinterpret_cast<const int4*>(misses.pool +
                                         int64_t{misses.pool_rows[index]} * kRowBytes);
  }

  __device__ int4* destination(int64_t index) const {
    return reinterpret_cast<int4*>(misses.buffer + int64_t{misses.buffer_rows[index]} * kRowBytes);
  }

  // A warp of blocks [0, blocks) copies row by row, all loads of a row before its stores.
  __device__ void read_in_place(int block, int blocks, int64_t first, int64_t end) const {
    const int warps_in_block = static_cast<int>(blockDim.x) / kWarp;
    const int64_t warp = int64_t{block} * warps_in_block + threadIdx.x / kWarp;
    for (int64_t row = first + warp; row < end; row += int64_t{blocks} * warps_in_block) {
      copy_row<Streaming, kVectors>(destination(row), source(row));
    }
  }

  // Each warp claims request by request from `first` on, and reads it in place, until one follows
  // that the CPU has claimed.
  __device__ void read_until_met(int64_t first, int64_t end) const {
    constexpr uint32_t kPostedRows = 16;
    const cuda::atomic_ref<uint32_t, cuda::thread_scope_device> by_cpu(*misses.claimed_by_cpu);
    for (bool is_met = false; !is_met;) {
      uint32_t row = 0;
      uint32_t limit = 0;
      if (lane_index() == 0) {
        row = static_cast<uint32_t>(first) + atomicAdd(misses.claimed, 1U);
        if (row % kPostedRows == 0 && row < end) {
          post(requests, requests.in_place, row + 1);
        }
        limit = by_cpu.load(cuda::memory_order_relaxed);
      }
      row = __shfl_sync(~0U, row, 0);
      if (row >= end) {
        return;
      }
      copy_row<Streaming, kVectors>(destination(row), source(row));
      is_met = __shfl_sync(~0U, limit, 0) <= row + 1;
    }
  }

  // A thread brings the CPU's claims to device memory until both sides have met. Reads of one line
  // of host memory by several warps would wait for each other. CPU threads may post their claims
  // out of order, so only the lowest one counts: warps that have met it end, and this thread must
  // too.
  __device__ void watch_cpu(int64_t first, int64_t end) const {
    const SystemAtomic<const uint64_t> posted(requests.by_cpu->word);
    const cuda::atomic_ref<uint32_t, cuda::thread_scope_device> claimed(*misses.claimed);
    const cuda::atomic_ref<uint32_t, cuda::thread_scope_device> by_cpu(*misses.claimed_by_cpu);
    for (int64_t limit = end; first + claimed.load(cuda::memory_order_relaxed) < limit;) {
      const uint64_t word = posted.load(cuda::memory_order_relaxed);
      const int64_t posted_limit = static_cast<uint32_t>(word);
      if (word >> 32 == requests.launch_id && posted_limit < limit) {
        limit = posted_limit;
        by_cpu.store(static_cast<uint32_t>(word), cuda::memory_order_relaxed);
      }
    }
  }

  // How the wait for a piece has ended.
  enum class Wait { kPacked, kInPlace, kLate };

  // Waits until a piece is packed, or all requests below `end` are claimed to be read in place.
  __device__ Wait await(int64_t piece, int64_t first, int64_t end) const {
    const SystemAtomic<const uint32_t> packed(requests.packed[piece].launch_id);
    const cuda::atomic_ref<uint32_t, cuda::thread_scope_device> claimed(*misses.claimed);
    const int64_t start = clock64();
    for (;;) {
      const int64_t in_place = first + claimed.load(cuda::memory_order_relaxed);
      if (packed.load(cuda::memory_order_acquire) == requests.launch_id) {
        return Wait::kPacked;
      }
      if (in_place >= end) {
        return Wait::kInPlace;
      }
      if (clock64() - start > kPatienceCycles) {
        return Wait::kLate;
      }
    }
  }

  // The block copies the packed rows of a piece to their destinations. They are consecutive, the
  // last request of all first; `end` follows the last one.
  __device__ void copy_piece(const Pieces& pieces, int64_t first, int rows, int64_t end) const {
    constexpr int kTurns = 4;
    const int4* packed =
        reinterpret_cast<const int4*>(requests.staging) + pieces.ring_row(first) * kVectors;
    const int step = static_cast<int>(blockDim.x);
    for (int begin = threadIdx.x; begin < rows * kVectors; begin += kTurns * step) {
      int4 held[kTurns];
      load_vectors<Streaming>(held, packed, begin, step, rows * kVectors);
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        const int i = begin + turn * step;
        if (i < rows * kVectors) {
          const int row = i / kVectors;
          __stcs(destination(end - 1 - first - row) + i - row * kVectors, held[turn]);
        }
      }
    }
  }

  // Blocks [0, blocks) copy requests [first, end) as the CPU packs them.
  __device__ void copy_packed(int block, int blocks, int64_t first, int64_t end) const {
    __shared__ Wait wait;
    const Pieces pieces(end - first, requests.ring_rows);
    for (int64_t piece = block; piece < pieces.count; piece += blocks) {
      const int64_t row = piece * pieces.piece_rows;
      const auto rows = static_cast<int>(min(pieces.piece_rows, pieces.rows - row));
      if (threadIdx.x == 0) {
        wait = await(piece, first, end - row);
      }
      __syncthreads();
      const Wait ended = wait;
      if (ended == Wait::kInPlace) {
        return;  // so are all further ones
      }
      if (ended == Wait::kPacked) {
        copy_piece(pieces, row, rows, end);
      } else {
        read_in_place(0, 1, end - row - rows, end - row);
      }
      __syncthreads();
      // A late worker may still write to a ring slot that was not read: it is not given back.
      if (ended == Wait::kPacked && threadIdx.x == 0 && piece + pieces.ring_pieces < pieces.count) {
        SystemAtomic<uint32_t>(requests.read[piece].launch_id)
            .store(requests.launch_id, cuda::memory_order_release);
      }
    }
  }
};
