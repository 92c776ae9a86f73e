// The kernel of every step: each team of threads copies one fragment.
#pragma once

#include "../common/loads_first.h"
#include "operator.h"

constexpr int kMinTeamLog2 = 2;           // at least four threads copy a fragment
constexpr uint32_t kBytesPerThread = 64;  // of an average fragment: four 16-byte vectors
constexpr int kLoadsInFlight = 4;         // per thread

// Arguments of one launch. It owns nothing: descriptors and buffers must live until it has run.
struct Batch {
  const uint8_t* bounce;
  uint8_t* dst;
  const Descriptor* descriptors;  // device memory, or pinned host memory
  uint32_t count;
  uint32_t team_log2;  // threads of a team, a power of two
};

// Team size, as a power of two, at which each thread copies kBytesPerThread of an average fragment.
inline uint32_t team_log2(uint64_t bytes, uint32_t count) {
  uint32_t log2 = kMinTeamLog2;
  while ((uint64_t{kBytesPerThread} << log2) * count < bytes) {
    ++log2;
  }
  return log2;
}

// Blocks needed for one team per fragment.
inline uint32_t blocks_for(uint32_t count, uint32_t team_log2) {
  return static_cast<uint32_t>(((uint64_t{count} << team_log2) + kBlock - 1) / kBlock);
}

#ifdef __CUDACC__
// A fragment, and the thread of the team that copies a share of it.
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

// Copies whole words of the fragment, then its remaining bytes. Both addresses are aligned to a
// Word.
template <typename Word>
__device__ void copy_words(const Share& share) {
  const Word* src = reinterpret_cast<const Word*>(share.src);
  Word* dst = reinterpret_cast<Word*>(share.dst);
  const uint32_t words = share.len / sizeof(Word);
  for (uint32_t first = share.lane; first < words; first += kLoadsInFlight * share.team) {
    Word loaded[kLoadsInFlight];
    load_vectors<Cached>(loaded, src, first, share.team, words);
    store_vectors<Cached>(dst, loaded, first, share.team, words);
  }
  const uint32_t whole = words * static_cast<uint32_t>(sizeof(Word));
  for (uint32_t i = whole + share.lane; i < share.len; i += share.team) {
    share.dst[i] = share.src[i];
  }
}

// Copies with the widest access for which both addresses are aligned. The kernels below take such a
// class as `FragmentCopy`: its `copy` does one thread's share of a fragment.
struct WidestAccess {
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

// A block first loads the descriptors of its teams together, so that the loads coalesce.
template <typename FragmentCopy>
static __global__ void __launch_bounds__(kBlock) unpack_fragments(Batch batch) {
  __shared__ Descriptor fetched[kBlock >> kMinTeamLog2];
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
    FragmentCopy::copy(share_of(batch.bounce, batch.dst, fetched[fragment - first], lane, team));
  }
}

// Launches the kernel for `count` descriptors of `bytes` in total. They must not change until it
// has run. Throws std::runtime_error with CUDA's message.
template <typename FragmentCopy>
void enqueue(const Receive& receive, const Descriptor* descriptors, uint32_t count, uint64_t bytes,
             cudaStream_t stream) {
  const Batch batch{receive.bounce, receive.dst, descriptors, count, team_log2(bytes, count)};
  unpack_fragments<FragmentCopy><<<blocks_for(count, batch.team_log2), kBlock, 0, stream>>>(batch);
  check(cudaGetLastError(), "kernel launch");
}
#endif
