// The CUDA driver with every call counted.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory_source.h"

// Throws std::runtime_error with `what` and CUDA's message unless `status` is success.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// cudaMalloc, cudaFree and CUDA events. Every call restores the thread's current device.
class DriverSource : public MemorySource {
 public:
  // Frees memory that was not released. Ignores errors: the driver may already be unloaded.
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
    Device& state = at(device);
    ++state.counts.allocations;
    void* ptr = nullptr;
    const cudaError_t status = cudaMalloc(&ptr, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the sticky error
      return nullptr;
    }
    check(status, "cudaMalloc");
    state.ranges.emplace(ptr, bytes);
    state.counts.reserved += bytes;
    state.counts.peak_reserved = std::max(state.counts.peak_reserved, state.counts.reserved);
    return ptr;
  }

  void release(int device, void* ptr) override {
    const Guard guard(device);
    Device& state = at(device);
    const auto found = state.ranges.find(ptr);
    if (found == state.ranges.end()) {
      throw std::logic_error("release: not an allocation of this source");
    }
    ++state.counts.frees;
    check(cudaFree(ptr), "cudaFree");
    state.counts.reserved -= found->second;
    state.ranges.erase(found);
  }

  Event record(int device, Stream stream) override {
    const Guard guard(device);
    Device& state = at(device);
    ++state.counts.event_records;
    cudaEvent_t event;
    if (state.spare.empty()) {
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    } else {
      event = state.spare.back();
      state.spare.pop_back();
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

  // Makes `device` current in this scope.
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
