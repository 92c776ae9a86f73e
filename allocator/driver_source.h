// The real driver, every call of it counted.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory_source.h"

// Throws std::runtime_error with CUDA's own message behind `what`, unless `status` is success.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// cudaMalloc, cudaFree and CUDA events. Every call leaves the thread's current device as it was.
class DriverSource : public MemorySource {
 public:
  // Frees what was not given back. Nothing is done about errors: the driver may be gone by then.
  ~DriverSource() override {
    for (size_t device = 0; device < devices_.size(); ++device) {
      for (const auto& [ptr, size] : devices_[device].ranges) {
        cudaFree(ptr);
      }
      for (const cudaEvent_t event : devices_[device].spare) {
        cudaEventDestroy(event);
      }
    }
  }

  void* allocate(int device, size_t bytes) override {
    const Guard guard(device);
    Device& own = at(device);
    ++own.counts.allocations;
    void* ptr = nullptr;
    const cudaError_t status = cudaMalloc(&ptr, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it would be reported by the next call that asks
      return nullptr;
    }
    check(status, "cudaMalloc");
    own.ranges.emplace(ptr, bytes);
    own.counts.reserved += bytes;
    own.counts.peak_reserved = std::max(own.counts.peak_reserved, own.counts.reserved);
    return ptr;
  }

  void release(int device, void* ptr) override {
    const Guard guard(device);
    Device& own = at(device);
    const auto found = own.ranges.find(ptr);
    if (found == own.ranges.end()) {
      throw std::logic_error("release: not an allocation of this source");
    }
    ++own.counts.frees;
    check(cudaFree(ptr), "cudaFree");
    own.counts.reserved -= found->second;
    own.ranges.erase(found);
  }

  Event record(int device, Stream stream) override {
    const Guard guard(device);
    Device& own = at(device);
    ++own.counts.event_records;
    cudaEvent_t event;
    if (own.spare.empty()) {
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    } else {
      event = own.spare.back();
      own.spare.pop_back();
    }
    check(cudaEventRecord(event, reinterpret_cast<cudaStream_t>(stream)), "cudaEventRecord");
    return reinterpret_cast<Event>(event);
  }

  bool is_done(int device, Event event) override {
    ++at(device).counts.event_queries;
    const cudaError_t status = cudaEventQuery(reinterpret_cast<cudaEvent_t>(event));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }

  void wait(int device, Event event) override {
    ++at(device).counts.event_waits;
    check(cudaEventSynchronize(reinterpret_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
  }

  void recycle(int device, Event event) override {
    at(device).spare.push_back(reinterpret_cast<cudaEvent_t>(event));
  }

  SourceCounts counts(int device) const override { return devices_.at(size_t(device)).counts; }

  void reset_counts(int device) override {
    SourceCounts& counts = at(device).counts;
    counts = {counts.reserved, counts.reserved, 0, 0, 0, 0, 0};
  }

 private:
  struct Device {
    std::unordered_map<void*, size_t> ranges;
    std::vector<cudaEvent_t> spare;
    SourceCounts counts;
  };

  // The driver works on the current device of the thread; ours is an argument.
  class Guard {
   public:
    explicit Guard(int device) {
      check(cudaGetDevice(&before_), "cudaGetDevice");
      changed_ = before_ != device;
      if (changed_) {
        check(cudaSetDevice(device), "cudaSetDevice");
      }
    }
    ~Guard() {
      if (changed_) {
        cudaSetDevice(before_);
      }
    }

   private:
    int before_ = 0;
    bool changed_ = false;
  };

  Device& at(int device) { return devices_.at(size_t(device)); }

  std::array<Device, kMaxDevices> devices_;
};
