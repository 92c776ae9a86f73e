// The operation of this study: move pieces between host and device memory. workload.py creates a
// method through bindings.cpp and launches it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/check.h"

// Kinds of host memory; workload.py allocates them.
enum class Memory { kPageable, kPinned, kWriteCombined, kRegistered, kRegisteredHuge, kManaged };

// Pieces of `size` bytes, `pitch` bytes apart in host memory and packed in device memory. It owns
// nothing: the memory outlives the method that moves them.
struct Pieces {
  uint8_t* host;
  uint8_t* device;
  uint8_t* landing;  // host memory, with the same pitch, in which a round trip ends; else null
  int64_t size;
  int64_t pitch;
  int64_t count;
  bool to_device;
  int streams;  // of a round trip
  int blocks;   // of a copy by the SMs; 0 for enough to keep the GPU busy

  uint8_t* on_host(int64_t i) const { return host + i * pitch; }
  uint8_t* on_device(int64_t i) const { return device + i * size; }
  uint8_t* from(int64_t i) const { return to_device ? on_host(i) : on_device(i); }
  uint8_t* to(int64_t i) const { return to_device ? on_device(i) : on_host(i); }
  int64_t bytes() const { return size * count; }
  cudaMemcpyKind kind() const {
    return to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  }
};

// A way of moving pieces. Its constructor does all work that launches share. Not thread-safe.
class Method {
 public:
  explicit Method(const Pieces& moved) : pieces(moved) {}
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // Moves the pieces in the order of `stream`. They have arrived once this has returned and the
  // stream is idle. Throws std::runtime_error with CUDA's message.
  virtual void launch(cudaStream_t stream) = 0;

  // Samples that only this method takes, in seconds, by metric; most have none. Waits for the
  // stream.
  virtual std::map<std::string, std::vector<double>> samples(cudaStream_t /*stream*/) { return {}; }

 protected:
  const Pieces pieces;
};

// Each variant defines these two: its kind of memory, and its method, which throws
// std::invalid_argument for pieces that it cannot move.
extern const Memory kMemory;
std::unique_ptr<Method> method(const Pieces& pieces);
