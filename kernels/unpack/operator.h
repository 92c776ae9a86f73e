// The operation every variant of this study implements, and the host path it goes by. workload.py
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
// Offsets and lengths are in B.
struct alignas(16) Descriptor {
  uint32_t src_off;
  uint32_t len;
  uint64_t dst_off;
};
static_assert(sizeof(Descriptor) == 16, "a descriptor is one 16-byte vector");

constexpr int kBlockDescriptors = BLOCK_DESCRIPTORS;

// What the transport hands over at a time: as many descriptors as `count` says, `bytes` in all.
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

// All chunks of one receive. The bounce buffer starts on a 16-byte boundary and is whole 16-byte
// vectors long. It owns neither the buffers nor the blocks.
struct Receive {
  const uint8_t* bounce;  // device memory
  uint64_t bounce_bytes;
  uint8_t* dst;  // device memory
  uint64_t dst_bytes;
  std::vector<Chunk> chunks;
  uint32_t descriptors;  // of all chunks
  uint64_t bytes;        // of all chunks
};

// Where the host's time goes. Names are those of the metrics in study.yaml.
enum Part { kCreate, kMalloc, kBatch, kCopy, kLaunch, kWait, kFree, kDestroy, kParts };
constexpr std::array<const char*, kParts> kPartNames = {"create_time", "malloc_time", "batch_time",
                                                        "copy_time",   "launch_time", "wait_time",
                                                        "free_time",   "destroy_time"};

// Books the time since the last booking, so that the parts of a call add up to the call. Until it
// is started it books nothing and costs no clock. One thread.
class Parts {
 public:
  using Clock = std::chrono::steady_clock;

  void start() {
    is_on_ = true;
    last_ = Clock::now();
  }
  void book(Part part) {
    if (is_on_) {
      const Clock::time_point now = Clock::now();
      seconds_[part] += std::chrono::duration<double>(now - last_).count();
      last_ = now;
    }
  }
  const std::array<double, kParts>& seconds() const { return seconds_; }

 private:
  bool is_on_ = false;
  Clock::time_point last_;
  std::array<double, kParts> seconds_{};
};

// A variant's way from descriptors on the host to bytes at their destination. What it sets up once
// belongs into its constructor. A receive is unpacked again only after the one before is done. One
// thread at a time; std::runtime_error carries CUDA's own message.
class Path {
 public:
  Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  // Unpacks every chunk and books what the host does to `parts`; done once this has returned and
  // `stream` is idle.
  virtual void unpack(cudaStream_t stream, Parts& parts) = 0;

  // Whether `unpack` waits for the GPU, or submits so much that the driver might.
  virtual bool waits() const = 0;

  // What must come right before `unpack` and is not part of it, and whether there is any.
  virtual void get_ready() {}
  virtual bool must_get_ready() const { return false; }
};

// Each variant defines it. `receive` outlives the path.
std::unique_ptr<Path> make_path(const Receive& receive);
