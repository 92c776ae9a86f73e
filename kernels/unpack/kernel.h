// The kernel of every step: teams of threads, each copying one fragment.
#pragma once

#include "operator.h"

constexpr int kBlock = 256;          // threads of a block
constexpr int kLeastTeamLog2 = 2;    // four threads move the smallest fragments
constexpr uint32_t kTeamBytes = 64;  // a thread moves four vectors of an average fragment
constexpr int kHeld = 4;             // loads a thread has under way

// What one launch is given. It owns nothing; descriptors and buffers stay until it has run.
struct Batch {
  const uint8_t* bounce;
  uint8_t* dst;
  const Descriptor* descriptors;  // device memory, or pinned host memory
  uint32_t count;
  uint32_t team_log2;  // threads of a team, a power of two
};

// A team as large as the average fragment keeps busy.
inline uint32_t team_log2(uint64_t bytes, uint32_t count) {
  uint32_t log2 = kLeastTeamLog2;
  while ((uint64_t{kTeamBytes} << log2) * count < bytes) {
    ++log2;
  }
  return log2;
}

// Blocks that have a team for each of `count` fragments.
inline uint32_t blocks_for(uint32_t count, uint32_t team_log2) {
  return static_cast<uint32_t>(((uint64_t{count} << team_log2) + kBlock - 1) / kBlock);
}

#ifdef __CUDACC__
// One thread's share of a fragment.
struct Share {
  uint8_t* dst;
  const uint8_t* src;
  uint32_t len;
  uint32_t lane;  // of the team
  uint32_t team;  // threads
};

__device__ inline Share share_of(const uint8_t* bounce, uint8_t* dst, const Descriptor& fragment,
                                 uint32_t lane, uint32_t team) {
  return {dst + fragment.dst_off, bounce + fragment.src_off, fragment.len, lane, team};
}

// Whole words of the fragment, then what is left of it bytewise. Both ends are aligned to a word.
template <typename Word>
__device__ void copy_words(const Share& share) {
  const Word* src = reinterpret_cast<const Word*>(share.src);
  Word* dst = reinterpret_cast<Word*>(share.dst);
  const uint32_t words = share.len / sizeof(Word);
  for (uint32_t first = share.lane; first < words; first += kHeld * share.team) {
    Word held[kHeld];
#pragma unroll
    for (int turn = 0; turn < kHeld; ++turn) {
      const uint32_t i = first + turn * share.team;
      if (i < words) {
        held[turn] = src[i];
      }
    }
#pragma unroll
    for (int turn = 0; turn < kHeld; ++turn) {
      const uint32_t i = first + turn * share.team;
      if (i < words) {
        dst[i] = held[turn];
      }
    }
  }
  const uint32_t whole = words * static_cast<uint32_t>(sizeof(Word));
  for (uint32_t i = whole + share.lane; i < share.len; i += share.team) {
    share.dst[i] = share.src[i];
  }
}

// The widest access that source and destination are both aligned to. A `Way`, as the kernels below
// take it: `copy` is one thread's part of copying a fragment.
struct ByWidth {
  __device__ static void copy(const Share& share) {
    const uintptr_t bits =
        reinterpret_cast<uintptr_t>(share.src) | reinterpret_cast<uintptr_t>(share.dst);
    if (bits % 16 == 0) {
      copy_words<uint4>(share);
    } else if (bits % 8 == 0) {
      copy_words<uint2>(share);
    } else if (bits % 4 == 0) {
      copy_words<uint32_t>(share);
    } else if (bits % 2 == 0) {
      copy_words<uint16_t>(share);
    } else {
      copy_words<uint8_t>(share);
    }
  }
};

// A block first fetches the descriptors of its teams, in one access where they are neighbours.
template <typename Way>
static __global__ void __launch_bounds__(kBlock) unpack_fragments(Batch batch) {
  __shared__ Descriptor fetched[kBlock >> kLeastTeamLog2];
  const uint64_t start = static_cast<uint64_t>(blockIdx.x) * kBlock;
  const uint32_t first = static_cast<uint32_t>(start >> batch.team_log2);
  const uint32_t last = static_cast<uint32_t>((start + kBlock - 1) >> batch.team_log2);
  if (first + threadIdx.x <= min(last, batch.count - 1)) {
    fetched[threadIdx.x] = batch.descriptors[first + threadIdx.x];
  }
  __syncthreads();
  const uint64_t thread = start + threadIdx.x;
  const uint32_t fragment = static_cast<uint32_t>(thread >> batch.team_log2);
  if (fragment < batch.count) {
    const uint32_t team = 1U << batch.team_log2;
    const uint32_t lane = static_cast<uint32_t>(thread) & (team - 1);
    Way::copy(share_of(batch.bounce, batch.dst, fetched[fragment - first], lane, team));
  }
}

// Enqueues `count` descriptors of `bytes` in all on `stream`; they stay where they are until it has
// run. Throws std::runtime_error where CUDA refuses.
template <typename Way>
void enqueue(const Receive& receive, const Descriptor* descriptors, uint32_t count, uint64_t bytes,
             cudaStream_t stream) {
  const Batch batch{receive.bounce, receive.dst, descriptors, count, team_log2(bytes, count)};
  unpack_fragments<Way><<<blocks_for(count, batch.team_log2), kBlock, 0, stream>>>(batch);
  check(cudaGetLastError(), "kernel launch");
}
#endif
