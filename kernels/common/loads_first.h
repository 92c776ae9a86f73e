// Copies in which each thread has all of its loads in flight before its first store. In turn t, a
// thread moves vector first + t * step, if that is below `count`: in a warp's copy of a row,
// `first` is the lane and `step` is 32.
#pragma once

#include "launch.h"

#ifdef __CUDACC__
// How a thread reads and writes vectors that are worth caching.
struct Cached {
  template <class Vector>
  __device__ static Vector load(const Vector* from) {
    return *from;
  }
  template <class Vector>
  __device__ static void store(Vector* to, const Vector& vector) {
    *to = vector;
  }
};

// The same for vectors that are used once: the caches evict them first.
struct Streaming {
  template <class Vector>
  __device__ static Vector load(const Vector* from) {
    return __ldcs(from);
  }
  template <class Vector>
  __device__ static void store(Vector* to, const Vector& vector) {
    __stcs(to, vector);
  }
};

template <class Access, class Vector, int kTurns, class Index, class Step, class Count>
__device__ inline void load_vectors(Vector (&held)[kTurns], const Vector* src, Index first,
                                    Step step, Count count) {
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const Index i = turn * step + first;
    if (i < count) {
      held[turn] = Access::load(src + i);
    }
  }
}

template <class Access, class Vector, int kTurns, class Index, class Step, class Count>
__device__ inline void store_vectors(Vector* dst, const Vector (&held)[kTurns], Index first,
                                     Step step, Count count) {
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const Index i = turn * step + first;
    if (i < count) {
      Access::store(dst + i, held[turn]);
    }
  }
}

// Copies the vectors of at most kTurns turns.
template <class Access, int kTurns, class Vector, class Index, class Step, class Count>
__device__ inline void copy_loads_first(Vector* dst, const Vector* src, Index first, Step step,
                                        Count count) {
  Vector held[kTurns];
  load_vectors<Access>(held, src, first, step, count);
  store_vectors<Access>(dst, held, first, step, count);
}

// Turns in which a warp moves kVectors vectors.
template <int kVectors>
constexpr int kWarpTurns = (kVectors + kWarp - 1) / kWarp;

// A warp copies a row of kVectors 16-byte vectors.
template <class Access, int kVectors>
__device__ inline void copy_row(int4* dst, const int4* src) {
  int4 held[kWarpTurns<kVectors>];
  load_vectors<Access>(held, src, lane_index(), kWarp, kVectors);
  store_vectors<Access>(dst, held, lane_index(), kWarp, kVectors);
}

#endif
