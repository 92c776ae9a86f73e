// Gigabytes of pinned host memory, several times as fast as by cudaHostAlloc. Needs Linux and CUDA;
// pin.cu measures it.
//   PinnedMemory pool(size_t{16} << 30);
//   pool.copy(on_device, pool.data() + offset, bytes, stream);
// Threads clear huge pages; then one registers them in chunks, because the driver's lock admits one
// at a time and is free between two chunks. CUDA refuses a copy across the border of two chunks, so
// copy() splits it.
#pragma once

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Bytes that this process may still pin: what the system and its control group leave.
inline size_t free_host_bytes() {
  size_t kib = 0, limit = 0, used = 0;
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word && word != "MemAvailable:";) {
  }
  memory >> kib;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // stays 0 if there is none
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return limit ? std::min(kib * 1024, limit - std::min(limit, used)) : kib * 1024;
}

class PinnedMemory {
 public:
  // Pins `bytes` zero bytes for all devices. A chunk is a multiple of 2 MiB; 64 MiB are better
  // beside processes that allocate device memory. Throws std::runtime_error with the first error.
  explicit PinnedMemory(size_t bytes, size_t chunk_bytes = size_t{256} << 20, unsigned threads = 0)
      : bytes_(bytes), chunk_bytes_(std::max(chunk_bytes, kHugePage) / kHugePage * kHugePage) {
    const size_t room = free_host_bytes();
    if (bytes == 0 || bytes > room) {
      throw std::runtime_error("bytes to pin: expected 1 to " + std::to_string(room) + ", got " +
                               std::to_string(bytes));
    }
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    map_ = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (map_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    data_ = reinterpret_cast<char*>((uintptr_t(map_) / kHugePage + 1) * kHugePage);
    madvise(data_, bytes, MADV_HUGEPAGE);  // without huge pages it is only slower
    touch(threads ? threads : std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
    for (cudaError_t status; registered_ < bytes; registered_ += chunk_bytes_) {
      const size_t size = std::min(chunk_bytes_, bytes - registered_);
      status = cudaHostRegister(data_ + registered_, size, cudaHostRegisterPortable);
      if (status) unpin(), check(status);
    }
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { unpin(); }

  char* data() const { return data_; }
  size_t size() const { return bytes_; }
  size_t chunk_bytes() const { return chunk_bytes_; }

  // Enqueues a copy from or to this memory, by one call for each chunk. Returns the first error.
  cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream) const {
    const auto offset = [this](const void* end) { return uintptr_t(end) - uintptr_t(data_); };
    size_t at = offset(from) < bytes_ ? offset(from) : offset(to);
    for (size_t copied = 0, part; copied < bytes; copied += part, at += part) {
      part = std::min(bytes - copied, chunk_bytes_ - at % chunk_bytes_);
      const auto status =
          cudaMemcpyAsync(static_cast<char*>(to) + copied, static_cast<const char*>(from) + copied,
                          part, cudaMemcpyDefault, stream);
      if (status) return status;
    }
    return cudaSuccess;
  }

 private:
  static constexpr size_t kHugePage = size_t{1} << 21;

  static void check(cudaError_t status) {
    if (status) throw std::runtime_error(std::string("pinning: ") + cudaGetErrorString(status));
  }

  // Makes all pages present, each thread an equal part of them.
  void touch(unsigned count) {
    const size_t part = (bytes_ / count / kHugePage + 1) * kHugePage;
    std::vector<std::thread> threads;
    for (size_t begin = 0; begin < bytes_; begin += part) {
      threads.emplace_back([this, begin, end = std::min(begin + part, bytes_)] {
        volatile char* const bytes = data_;
        for (size_t page = begin; page < end; page += 4096) bytes[page] = 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void unpin() {
    while (registered_) {
      registered_ -= std::min(registered_, chunk_bytes_);
      cudaHostUnregister(data_ + registered_);
    }
    munmap(map_, bytes_ + kHugePage);
  }

  size_t bytes_, chunk_bytes_;
  size_t registered_ = 0;  // bytes of whole chunks
  void* map_;
  char* data_;
};
