// The operation of this study: a receive, and the path by which a variant unpacks it. workload.py
// makes the descriptors and launches through bindings.cpp.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/check.h"

// One fragment: `len` bytes at bounce + src_off go to dst + dst_off. Destinations never overlap.
// Offsets and lengths are in bytes.
struct alignas(16) Descriptor {
  uint32_t src_off;
  uint32_t len;
  uint64_t dst_off;
};
static_assert(sizeof(Descriptor) == 16, "a descriptor is one 16-byte vector");

constexpr int kBlockDescriptors = BLOCK_DESCRIPTORS;

// A block of descriptors from the transport: the first `count` are used, for `bytes` in total.
struct DescriptorBlock {
  uint32_t count;
  uint32_t reserved;
  uint64_t bytes;
  const uint8_t* bounce;
  uint8_t* dst;
  Descriptor descriptors[kBlockDescriptors];
};

// The blocks of one chunk, in pageable host memory.
struct Chunk {
  const DescriptorBlock* blocks;
  uint32_t count;

  const DescriptorBlock* begin() const { return blocks; }
  const DescriptorBlock* end() const { return blocks + count; }
};

// All chunks of one receive, which owns neither buffers nor blocks. Address and size of the bounce
// buffer are multiples of 16 bytes.
struct Receive {
  const uint8_t* bounce;  // device memory
  uint64_t bounce_bytes;
  uint8_t* dst;  // device memory
  uint64_t dst_bytes;
  std::vector<Chunk> chunks;
  uint32_t descriptors;  // number, over all chunks
  uint64_t bytes;        // total, over all chunks
};

// Parts of the host's time. Their names are those of the metrics in study.yaml.
enum Part { kCreate, kMalloc, kBatch, kCopy, kLaunch, kWait, kFree, kDestroy, kParts };
constexpr std::array<const char*, kParts> kPartNames = {"create_time", "malloc_time", "batch_time",
                                                        "copy_time",   "launch_time", "wait_time",
                                                        "free_time",   "destroy_time"};

// A stopwatch: each lap adds the time since the previous one to a part, so that the parts of a call
// add up to the call. Before `start`, laps are ignored and read no clock. Not thread-safe.
class PartTimer {
 public:
  using Clock = std::chrono::steady_clock;

  void start() {
    is_running_ = true;
    last_ = Clock::now();
  }
  void lap(Part part) {
    if (is_running_) {
      const Clock::time_point now = Clock::now();
      seconds_[part] += std::chrono::duration<double>(now - last_).count();
      last_ = now;
    }
  }
  const std::array<double, kParts>& seconds() const { return seconds_; }

 private:
  bool is_running_ = false;
  Clock::time_point last_;
  std::array<double, kParts> seconds_{};
};

// Number of calls that a stream accepts without blocking the host, even if none of them can start.
constexpr uint32_t kMaxQueuedCalls = 16;

// How a variant brings the bytes that descriptors on the host describe to their destination. Its
// constructor sets up what all calls share. Not thread-safe; std::runtime_error carries CUDA's
// message.
class Path {
 public:
  Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  // Unpacks every chunk and adds the host's time to `timer`. The bytes have arrived once this has
  // returned and `stream` is idle; only then may it be called again.
  virtual void unpack(cudaStream_t stream, PartTimer& timer) = 0;

  // Whether `unpack` waits for the GPU, or submits enough work that the driver may wait.
  virtual bool waits() const = 0;

  // Untimed preparation of the next `unpack`, and whether a path needs any.
  virtual void get_ready() {}
  virtual bool must_get_ready() const { return false; }
};

// Makes the variant's path, which `receive` outlives. Defined by the variant, or by a header that
// leaves the path's `unpack` to the variant.
std::unique_ptr<Path> make_path(const Receive& receive);
