// Pinned host memory at one range of addresses, and copies of it across the borders of its chunks.
#pragma once

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/check.h"
#include "in_threads.h"

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kTouchedAtOnce = size_t{1} << 24;  // bytes that a thread draws at a time

// The monotonic clock, which is the same in all processes.
inline int64_t now_ns() {
  using std::chrono::steady_clock;
  return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

class PinnedMemory {
 public:
  // Memory of `bytes` bytes, which does not exist yet.
  explicit PinnedMemory(size_t bytes) : bytes_(bytes), chunk_bytes_(bytes) {
    check(cudaGetDevice(&device_), "the current device");
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { unpin(); }

  size_t bytes() const { return bytes_; }
  size_t chunk_bytes() const { return chunk_bytes_; }
  char* data() const { return data_; }
  int64_t touch_ns() const { return touch_ns_; }
  int64_t register_ns() const { return register_ns_; }

  // Allocates and pins by one call of CUDA.
  void allocate() {
    void* found = nullptr;
    check(cudaHostAlloc(&found, bytes_, cudaHostAllocDefault), "cudaHostAlloc");
    place(found, bytes_);
    undo_later([found] { return cudaFreeHost(found); });
  }

  // Reserves addresses, from a huge page's border on. `advice` is of madvise. Pages come later.
  void map(int advice) {
    const size_t room = (bytes_ + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
    void* found = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require_success(found != MAP_FAILED, "mmap");
    undo_later([=] { return munmap(found, room) == 0 ? cudaSuccess : cudaErrorUnknown; });
    const auto start = reinterpret_cast<std::uintptr_t>(found);
    place(reinterpret_cast<void*>((start + kHugePage - 1) / kHugePage * kHugePage), bytes_);
    const bool is_advised = madvise(found, room, advice) == 0;
    // A kernel without huge pages refuses the advice against them, too.
    require_success(is_advised || advice == MADV_NOHUGEPAGE, "madvise");
  }

  // Makes all pages present by one write to each.
  void touch(int threads) {
    const int64_t start = now_ns();
    in_threads(threads, (bytes_ + kTouchedAtOnce - 1) / kTouchedAtOnce,
               [this](size_t piece) { touch_range(piece * kTouchedAtOnce, kTouchedAtOnce); });
    touch_ns_ = now_ns() - start;
  }

  // Pins chunk by chunk. Each chunk is a registration.
  void register_chunks(size_t chunk_bytes, int threads) {
    const int64_t start = now_ns();
    chunk_bytes_ = chunk_bytes;
    in_threads(threads, chunks(), [this](size_t chunk) { register_chunk(chunk); });
    register_ns_ = now_ns() - start;
  }

  // Each thread touches a chunk, then pins it, while others touch theirs.
  void touch_and_register(size_t chunk_bytes, int threads) {
    chunk_bytes_ = chunk_bytes;
    in_threads(threads, chunks(), [this](size_t chunk) {
      touch_range(chunk * chunk_bytes_, chunk_bytes_);
      register_chunk(chunk);
    });
  }

  // Has memory of another source at `data`, in chunks. A copy may cross the borders of these.
  void place(void* data, size_t chunk_bytes) {
    data_ = static_cast<char*>(data);
    chunk_bytes_ = chunk_bytes;
  }

  // Has unpin() call `undo`, after everything that is added later.
  void undo_later(std::function<cudaError_t()> undo) {
    const std::lock_guard<std::mutex> lock(mutex_);
    undo_.push_back(std::move(undo));
  }

  // Unpins everything and returns it to the system. Returns the first error.
  cudaError_t unpin() {
    cudaError_t first = cudaSuccess;
    for (; !undo_.empty(); undo_.pop_back()) {
      const cudaError_t status = undo_.back()();
      first = first == cudaSuccess ? status : first;
    }
    data_ = nullptr;
    return first;
  }

  // Enqueues a copy between `device` and the bytes from `offset` on. CUDA refuses a copy that
  // spans two registrations, so there is one a chunk.
  void copy(char* device, size_t offset, size_t bytes, cudaMemcpyKind kind,
            cudaStream_t stream) const {
    for_each_part(offset, bytes, [&](size_t at, size_t size) {
      check(copy_as_one(device + (at - offset), at, size, kind, stream), "cudaMemcpyAsync");
    });
  }

  // The same by one copy. Returns CUDA's status.
  cudaError_t copy_as_one(char* device, size_t offset, size_t bytes, cudaMemcpyKind kind,
                          cudaStream_t stream) const {
    const bool to_device = kind == cudaMemcpyHostToDevice;
    char* host = data_ + offset;
    return cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, bytes, kind,
                           stream);
  }

  // Enqueues copies of the first `width` bytes of every `pitch` bytes to `device`, packed.
  // `pitch` divides the size of a chunk and of the memory.
  void copy_lines(char* device, size_t width, size_t pitch, cudaStream_t stream) const {
    for_each_part(0, bytes_, [&](size_t at, size_t size) {
      check(cudaMemcpy2DAsync(device + at / pitch * width, width, data_ + at, pitch, width,
                              size / pitch, cudaMemcpyHostToDevice, stream),
            "cudaMemcpy2DAsync");
    });
  }

 private:
  static void require_success(bool succeeded, const char* what) {
    if (!succeeded) {
      throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
    }
  }

  size_t chunks() const { return (bytes_ + chunk_bytes_ - 1) / chunk_bytes_; }

  void touch_range(size_t begin, size_t size) {
    const size_t end = std::min(begin + size, bytes_);
    for (size_t at = begin; at < end; at += kPage) {
      *const_cast<volatile char*>(data_ + at) = 0;
    }
  }

  void register_chunk(size_t chunk) {
    check(cudaSetDevice(device_), "the device of a thread");
    char* begin = data_ + chunk * chunk_bytes_;
    const size_t size = std::min(chunk_bytes_, bytes_ - chunk * chunk_bytes_);
    check(cudaHostRegister(begin, size, cudaHostRegisterDefault), "cudaHostRegister");
    undo_later([begin] { return cudaHostUnregister(begin); });
  }

  // Calls copy(offset, size) for each part of a range that lies within one chunk, in order.
  template <class Copy>
  void for_each_part(size_t offset, size_t bytes, const Copy& copy) const {
    while (bytes > 0) {
      const size_t part = std::min(bytes, chunk_bytes_ - offset % chunk_bytes_);
      copy(offset, part);
      offset += part;
      bytes -= part;
    }
  }

  size_t bytes_;
  size_t chunk_bytes_;
  char* data_ = nullptr;
  int device_ = 0;
  int64_t touch_ns_ = 0;     // 0 where pages are touched by CUDA or while others are registered
  int64_t register_ns_ = 0;  // the same
  std::mutex mutex_;
  std::vector<std::function<cudaError_t()>> undo_;
};
