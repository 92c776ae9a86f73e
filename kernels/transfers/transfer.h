// What every variant of this study does: move pieces between host and device memory. workload.py
// makes a method through bindings.cpp; whoever measures launches it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/check.h"

// The kinds of host memory a variant can ask for; workload.py allocates them.
enum class Memory { kPageable, kPinned, kWriteCombined, kRegistered, kRegisteredHuge, kManaged };

// Pieces of `size` bytes, `pitch` bytes apart in host memory and packed in device memory. They own
// nothing: the memory outlives the method that moves them.
struct Pieces {
  uint8_t* host;
  uint8_t* device;
  uint8_t* landing;  // host memory a round trip comes back to, as far apart; else null
  int64_t size;
  int64_t pitch;
  int64_t count;
  bool to_device;
  int streams;  // over which a round trip is spread
  int blocks;   // of a copy by the SMs; 0 for as many as keep the GPU busy

  uint8_t* on_host(int64_t i) const { return host + i * pitch; }
  uint8_t* on_device(int64_t i) const { return device + i * size; }
  uint8_t* from(int64_t i) const { return to_device ? on_host(i) : on_device(i); }
  uint8_t* to(int64_t i) const { return to_device ? on_device(i) : on_host(i); }
  int64_t bytes() const { return size * count; }
  cudaMemcpyKind kind() const {
    return to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  }
};

// A way of moving some pieces. What can be done once is done when it is made. One thread at a time.
class Method {
 public:
  explicit Method(const Pieces& moved) : pieces(moved) {}
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // Moves the pieces in the order of `stream`; some methods do so before this returns, the others
  // are done when the stream is. Throws std::runtime_error where CUDA refuses.
  virtual void launch(cudaStream_t stream) = 0;

  // Samples that only this method can take, in s, by metric; none of most. It waits for the stream.
  virtual std::map<std::string, std::vector<double>> samples(cudaStream_t /*stream*/) { return {}; }

 protected:
  const Pieces pieces;
};

// Each variant defines these two: the memory it is about and its way of moving pieces, which throws
// std::invalid_argument for pieces it cannot move.
extern const Memory kMemory;
std::unique_ptr<Method> method(const Pieces& pieces);
