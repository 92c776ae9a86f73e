// Scattered rows of a pool in pinned host memory, packed on the GPU: by a kernel that reads them in
// place, or by CPU threads that pack them for the copy engine where it would wait for page walks.
// Needs CUDA only; gather.cu measures it and is a PyTorch extension.
//   RowGather rows(pool, pool_bytes, row_bytes, max_rows);
//   rows.gather(on_gpu, row_numbers, count, stream);
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// A warp owns four rows. Each lane has eight loads in flight before it stores the first.
static __global__ void gather_rows(int4* to, const int4* pool, const int32_t* rows, int64_t count,
                                   int64_t vectors) {
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / 32;
  int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32 * 4;
  for (; row < count; row += warps * 4) {
    for (int64_t first = threadIdx.x % 32; first < vectors; first += 64) {
      int4 held[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int64_t r = row + i / 2, vector = first + i % 2 * 32;
        if (r < count && vector < vectors) held[i] = __ldcs(pool + rows[r] * vectors + vector);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int64_t r = row + i / 2, vector = first + i % 2 * 32;
        if (r < count && vector < vectors) __stcs(to + r * vectors + vector, held[i]);
      }
    }
  }
}

// Used by one thread at a time, with one stream. The calls return CUDA's first error.
class RowGather {
 public:
  // `pool` is pinned and has rows of `row_bytes` bytes, a multiple of 16. `threads` CPU threads
  // pack at most `max_rows` rows of a gather; if negative, seven eighths of the CPUs, up to 64.
  RowGather(const void* pool, int64_t pool_bytes, int64_t row_bytes, int64_t max_rows,
            int threads = -1)
      : pool_(static_cast<const char*>(pool)),
        row_bytes_(row_bytes),
        max_rows_(max_rows),
        has_page_walks_(pool_bytes > int64_t{1} << 30 && row_bytes < 2048) {
    if (row_bytes < 16 || row_bytes % 16) {
      throw std::invalid_argument("row_bytes: expected 16 n, got " + std::to_string(row_bytes));
    }
    chunk_rows_ = std::max<int64_t>(1, (256 << 10) / row_bytes);
    const int cpus = static_cast<int>(std::thread::hardware_concurrency());
    threads_ = threads < 0 ? std::min(cpus - (cpus + 7) / 8, 64) : threads;
    const int64_t ring_bytes = kSlots * chunk_rows_ * row_bytes;
    cudaError_t status = cudaHostAlloc(&ring_, ring_bytes + max_rows * 4, cudaHostAllocDefault);
    rows_ = reinterpret_cast<int32_t*>(ring_ + ring_bytes);
    for (cudaEvent_t& copied : sent_) {
      if (!status) status = cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
    }
    if (status) throw std::runtime_error(std::string("gather: ") + cudaGetErrorString(status));
  }
  RowGather(const RowGather&) = delete;
  ~RowGather() {
    for (cudaEvent_t copied : sent_) cudaEventDestroy(copied);
    cudaFreeHost(ring_);
  }
  int64_t row_bytes() const { return row_bytes_; }
  int threads() const { return threads_; }

  // Gathers to[i] = pool[rows[i]] on the GPU; `rows` are on the GPU or pinned.
  cudaError_t gather(void* to, const int32_t* rows, int64_t count, cudaStream_t stream) {
    // Packing pays for many rows beyond the reach of the GPU's TLB, if most cores of a host pack.
    // The page walks of larger rows, such as four adjacent ones, hide behind their bytes.
    const bool packs = has_page_walks_ && count >= 16384 && threads_ >= 8 && count <= max_rows_;
    return packs ? pack(to, rows, count, stream) : read(to, rows, count, stream);
  }

  // By a kernel. 16 blocks gather many rows of 656 bytes as fast, and leave the other SMs free.
  cudaError_t read(void* to, const int32_t* rows, int64_t count, cudaStream_t stream,
                   int max_blocks = 64) const {
    const auto blocks = std::clamp<int64_t>((count + 31) / 32, 1, max_blocks);
    gather_rows<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(
        static_cast<int4*>(to), reinterpret_cast<const int4*>(pool_), rows, count, row_bytes_ / 16);
    return cudaGetLastError();
  }

  // By threads that it starts, for at most max_rows rows. Waits for earlier work, and returns when
  // all copies are enqueued: no graph can capture it.
  cudaError_t pack(void* to, const int32_t* rows, int64_t count, cudaStream_t stream) {
    if (threads_ < 1 || count > max_rows_) return cudaErrorInvalidValue;
    cudaError_t status = cudaMemcpyAsync(rows_, rows, count * 4, cudaMemcpyDefault, stream);
    if (!status) status = cudaStreamSynchronize(stream);  // the ring is free now, too
    if (status) return status;
    const int64_t chunks = (count + chunk_rows_ - 1) / chunk_rows_;
    std::atomic<int64_t> next{0}, copied{0};              // the next chunk to pack; chunks copied
    std::vector<std::atomic<int64_t>> packed_id(kSlots);  // 1 + the last chunk packed in each slot
    const auto pack_chunks = [&] {
      for (int64_t chunk; (chunk = next++) < chunks; packed_id[chunk % kSlots] = chunk + 1) {
        while (chunk >= copied + kSlots) std::this_thread::yield();
        pack_rows(chunk * chunk_rows_, std::min((chunk + 1) * chunk_rows_, count), slot_of(chunk));
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_; ++i) threads.emplace_back(pack_chunks);
    for (int64_t chunk = 0; !status && chunk < chunks;) {
      if (packed_id[chunk % kSlots] == chunk + 1) {
        const int64_t first = chunk * chunk_rows_ * row_bytes_;
        const int64_t bytes = std::min(chunk_rows_ * row_bytes_, count * row_bytes_ - first);
        status = cudaMemcpyAsync(static_cast<char*>(to) + first, slot_of(chunk), bytes,
                                 cudaMemcpyHostToDevice, stream);
        if (!status) status = cudaEventRecord(sent_[chunk % kSlots], stream);
        ++chunk;
      } else {
        while (copied < chunk && !(status = cudaEventQuery(sent_[copied % kSlots]))) ++copied;
        if (status == cudaErrorNotReady) status = cudaSuccess, cudaGetLastError();
        std::this_thread::yield();
      }
    }
    if (status) copied = chunks;  // lets the threads end
    for (std::thread& thread : threads) thread.join();
    return status;
  }

 private:
  static constexpr int64_t kSlots = 128;  // of 256 KiB: the ring stays in the CPU's shared cache
  static constexpr int64_t kAhead = 32;   // rows that a thread prefetches
  char* slot_of(int64_t chunk) const { return ring_ + chunk % kSlots * chunk_rows_ * row_bytes_; }

  // Packs rows [begin, end) to `to`, and prefetches later ones meanwhile.
  void pack_rows(int64_t begin, int64_t end, char* to) const {
    for (int64_t i = begin - kAhead; i < end; ++i) {
      const char* const later = pool_ + rows_[std::min(i + kAhead, end - 1)] * row_bytes_;
      for (int64_t byte = 0; byte < row_bytes_; byte += 64) __builtin_prefetch(later + byte, 0, 1);
      if (i < begin) continue;
      std::memcpy(to + (i - begin) * row_bytes_, pool_ + rows_[i] * row_bytes_, row_bytes_);
    }
  }

  const char* pool_;
  int64_t row_bytes_, max_rows_, chunk_rows_;
  bool has_page_walks_;
  int threads_;
  char* ring_ = nullptr;           // kSlots chunks
  int32_t* rows_ = nullptr;        // row numbers of the gather that is packed
  cudaEvent_t sent_[kSlots] = {};  // last copy from each slot
};
