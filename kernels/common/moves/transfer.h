// The operation of studies that move pieces between host and device memory. A workload creates a
// method through bindings.h and launches it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../check.h"

// Offsets of a piece in bytes from the first byte of the pieces' memory on either side.
struct alignas(16) Place {
  int64_t host;
  int64_t device;
};

// Pieces of `size` bytes, `pitch` bytes apart in host memory and packed in device memory, unless
// there is a list of places. It owns nothing: the memory outlives the method that moves them.
struct Pieces {
  uint8_t* host;
  uint8_t* device;
  uint8_t* landing;     // host memory of a second transfer, which leaves the device; else null
  uint8_t* source;      // device memory that this second transfer reads, unless `device`; else null
  const Place* places;  // pinned memory: the place of each piece; null without a list
  int64_t size;
  int64_t pitch;
  int64_t count;
  bool to_device;
  int streams;  // of a round trip
  int threads;  // CPU threads that pack; 0 for all that the process may use
  int blocks;   // thread blocks of a copy by the SMs; 0 for enough to keep the GPU busy

  uint8_t* on_host(int64_t i) const { return host + (places ? places[i].host : i * pitch); }
  uint8_t* on_device(int64_t i) const { return device + (places ? places[i].device : i * size); }
  uint8_t* from(int64_t i) const { return to_device ? on_host(i) : on_device(i); }
  uint8_t* to(int64_t i) const { return to_device ? on_device(i) : on_host(i); }
  int64_t bytes() const { return size * count; }
  cudaMemcpyKind kind() const {
    return to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  }

  // Whether all pieces start and end on 16-byte boundaries on both sides.
  bool has_vectors() const {
    auto bits = reinterpret_cast<uintptr_t>(host) | reinterpret_cast<uintptr_t>(device) |
                static_cast<uintptr_t>(size | (places ? 0 : pitch));
    for (int64_t i = 0; places != nullptr && i < count; ++i) {
      bits |= static_cast<uintptr_t>(places[i].host | places[i].device);
    }
    return bits % 16 == 0;
  }

  void require_places() const {
    if (places == nullptr) {
      throw std::invalid_argument("places: expected an address, got 0");
    }
  }
  void require_vectors() const {
    if (!has_vectors()) {
      throw std::invalid_argument("size: expected pieces at multiples of 16 B, got size " +
                                  std::to_string(size));
    }
  }
  // One copy moves all pieces if they are packed on the device.
  void require_packed_device() const {
    for (int64_t i = 0; i < count; ++i) {
      if (on_device(i) != device + i * size) {
        throw std::invalid_argument("device: expected packed pieces in the order of the list, got" +
                                    (" piece " + std::to_string(i)) + " at byte " +
                                    std::to_string(on_device(i) - device));
      }
    }
  }
};

// Samples that only one method takes, by metric.
using Samples = std::map<std::string, std::vector<double>>;

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

  // Takes the method's samples, in the units of their metrics; most methods have none. Waits for
  // the stream.
  virtual Samples samples(cudaStream_t /*stream*/) { return {}; }

 protected:
  const Pieces pieces;
};

// Each variant defines this: its method, which throws std::invalid_argument for pieces that it
// cannot move.
std::unique_ptr<Method> method(const Pieces& pieces);
