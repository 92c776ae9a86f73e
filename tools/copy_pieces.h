// cudaMemcpyBatchAsync by the way that is fastest for the number, size and layout of the pieces,
// between pinned host memory and a GPU. Needs CUDA 12.8; copy_pieces.cu measures it.
//   copy_pieces({to, from, bytes, count}, stream);  // arrays of `count` pointers and sizes
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

struct Pieces {
  void** to;
  const void** from;
  size_t* bytes;
  size_t count;
};

enum class Way { kLoop, kPitched, kBatch, kKernel };

// The first line that holds the pieces, by number and mean size, has their way. A call takes 3 us,
// a kernel 5 us more than one of them. Large pieces fill the link without SMs.
struct Choice {
  size_t max_count, max_mean_bytes;
  Way way;
};
constexpr Choice kChoices[] = {{2, SIZE_MAX, Way::kLoop},
                               {SIZE_MAX, 256 << 10, Way::kKernel},
                               {SIZE_MAX, SIZE_MAX, Way::kBatch}};

// The pieces of a launch travel with its parameters, so nobody has to keep a list.
struct Listed {
  void* to[1024];
  const void* from[1024];
  size_t bytes[1024];
};

// A warp copies parts of 4 KiB: a lane has eight loads in flight before it stores the first. Each
// piece counts as `parts` of them, whatever its size.
static __global__ void copy_parts(const __grid_constant__ Listed list, size_t count, size_t parts) {
  const size_t lane = threadIdx.x % 32;
  size_t part = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  for (; part < count * parts; part += size_t{gridDim.x} * blockDim.x / 32) {
    const size_t piece = part / parts, begin = part % parts * 4096, end = list.bytes[piece];
    const size_t bytes = begin < end ? min(size_t{4096}, end - begin) : 0;
    char* const to = static_cast<char*>(list.to[piece]) + begin;
    const char* const from = static_cast<const char*>(list.from[piece]) + begin;
    if ((uintptr_t(to) | uintptr_t(from) | bytes) % 16 != 0) {
      for (size_t i = lane; i < bytes; i += 32) to[i] = from[i];
      continue;
    }
    int4 held[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const size_t at = (i * 32 + lane) * 16;
      if (at < bytes) held[i] = *reinterpret_cast<const int4*>(from + at);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const size_t at = (i * 32 + lane) * 16;
      if (at < bytes) *reinterpret_cast<int4*>(to + at) = held[i];
    }
  }
}

static __global__ void wait_20_us() {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < 20000);
}

inline ptrdiff_t first_pitch(const void* const* ends) {
  return static_cast<const char*>(ends[1]) - static_cast<const char*>(ends[0]);
}

// Whether one pitched copy can move these pieces, at least two.
inline bool are_pitched(const Pieces& p) {
  const ptrdiff_t to = first_pitch(p.to), from = first_pitch(p.from);
  for (size_t i = 0; i + 1 < p.count; ++i) {
    if (p.bytes[i + 1] != p.bytes[0]) return false;
    if (first_pitch(p.to + i) != to || first_pitch(p.from + i) != from) return false;
  }
  return std::min(to, from) >= ptrdiff_t(p.bytes[0]) && std::max(to, from) < 1 << 30;
}

inline Way way_for(const Pieces& p, bool may_use_sms) {
  if (p.count < 2) return Way::kLoop;
  if (are_pitched(p)) return Way::kPitched;
  const size_t total = std::accumulate(p.bytes, p.bytes + p.count, size_t{0});
  const size_t largest = *std::max_element(p.bytes, p.bytes + p.count);
  const bool may_read = may_use_sms && largest * p.count <= 16 * total;
  for (const Choice& choice : kChoices) {
    const bool holds = p.count <= choice.max_count && total <= choice.max_mean_bytes * p.count;
    if (holds && (may_read || choice.way != Way::kKernel)) return choice.way;
  }
  return Way::kBatch;
}

inline cudaError_t copy_by_kernel(const Pieces& p, cudaStream_t stream) {
  Listed list;
  for (size_t first = 0, count; first < p.count; first += count) {
    count = std::min<size_t>(p.count - first, 1024);
    std::copy_n(p.to + first, count, list.to);
    std::copy_n(p.from + first, count, list.from);
    std::copy_n(p.bytes + first, count, list.bytes);
    const size_t largest = *std::max_element(list.bytes, list.bytes + count);
    const size_t parts = std::max<size_t>(1, (largest + 4095) / 4096);
    // Eight blocks of eight warps fill the link by pieces of 4 KiB; smaller ones need more.
    const size_t blocks = std::min<size_t>(largest < 4096 ? 128 : 8, (count * parts + 7) / 8);
    copy_parts<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(list, count, parts);
  }
  return cudaGetLastError();
}

inline cudaError_t copy_by_batch(const Pieces& p, cudaStream_t stream) {
  // On an idle stream, the call would copy pieces of up to 24 KiB on the CPU.
  const bool is_slow = p.count > 16 && p.bytes[0] <= 24 << 10;
  if (is_slow && cudaStreamQuery(stream) == cudaSuccess) wait_20_us<<<1, 1, 0, stream>>>();
  cudaGetLastError();  // a busy stream is no error
  cudaMemcpyAttributes in_order{};
  in_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
#if CUDART_VERSION >= 13000
  return cudaMemcpyBatchAsync(p.to, p.from, p.bytes, p.count, &in_order, &first, 1, stream);
#else
  size_t failed = 0;
  return cudaMemcpyBatchAsync(p.to, const_cast<void**>(p.from), p.bytes, p.count, &in_order, &first,
                              1, &failed, stream);
#endif
}

// Enqueues copies of all pieces, which may run in any order. Returns CUDA's first error.
inline cudaError_t copy_pieces(const Pieces& p, cudaStream_t stream, Way way) {
  if (way == Way::kKernel) return copy_by_kernel(p, stream);
  if (way == Way::kPitched) {
    return cudaMemcpy2DAsync(p.to[0], first_pitch(p.to), p.from[0], first_pitch(p.from), p.bytes[0],
                             p.count, cudaMemcpyDefault, stream);
  }
  if (way == Way::kBatch && stream) return copy_by_batch(p, stream);
  cudaError_t status = cudaSuccess;
  for (size_t i = 0; i < p.count && !status; ++i) {
    status = cudaMemcpyAsync(p.to[i], p.from[i], p.bytes[i], cudaMemcpyDefault, stream);
  }
  return status;
}
inline cudaError_t copy_pieces(const Pieces& p, cudaStream_t stream, bool may_use_sms = true) {
  return copy_pieces(p, stream, way_for(p, may_use_sms));
}
