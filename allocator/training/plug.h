// The process's allocator behind the functions of PyTorch's CUDAPluggableAllocator.
#pragma once

#include <pthread.h>
#include <x86intrin.h>

#include <atomic>
#include <chrono>
#include <string>

#include "../lib/driver_source.h"
#include "../lib/host_source.h"
#include "../lib/pooled_allocator.h"

// Throws the error that PyTorch turns into torch.OutOfMemoryError. Each variant defines it by
// including out_of_memory.h, since only variants are compiled with PyTorch's headers.
[[noreturn]] void throw_out_of_memory(const std::string& what);

// Seconds in allocate and deallocate while counting was on, and the number of allocations.
struct TimeInCalls {
  double seconds;
  uint64_t allocations;
};

// The variant's allocator with the operations that PyTorch needs. Thread-safe, except for the calls
// that start and stop counting.
class Plug {
 public:
  // Made at the first call and never destroyed: tensors are freed until the process ends.
  static Plug& instance() {
    static Plug* const plug = new Plug;
    return *plug;
  }

  // Simulates a device of `capacity` bytes instead of using the driver. To be called before
  // anything else.
  static void use_host(size_t capacity) { host_capacity() = capacity; }

  void* allocate(size_t bytes, int device, Stream stream) {
    refuse_fork();
    const Timed timed(*this);
    if (counting_) {
      ++allocations_;
    }
    try {
      void* ptr = allocator_->allocate(bytes, {device, stream});
      note_use(device);
      return ptr;
    } catch (const OutOfMemory& error) {
      throw_out_of_memory(error.what());
    }
  }

  // Does nothing in a fork, which would free memory that its parent still uses.
  void deallocate(void* ptr, int device, Stream stream) {
    if (!is_fork()) {
      const Timed timed(*this);
      allocator_->deallocate(ptr, {device, stream});
    }
  }

  void record_stream(void* ptr, Stream stream) {
    refuse_fork();
    allocator_->record_stream(ptr, {device_of(ptr), stream});
  }

  void set_fraction(double fraction, int device) {
    refuse_fork();
    const size_t total = total_of(device);
    allocator_->set_limit(device, fraction < 1 ? size_t(fraction * double(total)) : total);
  }

  // Trims all devices that were used.
  void empty_cache() {
    refuse_fork();
    for (int device = 0; device < kMaxDevices; ++device) {
      if (used_.load() >> device & 1) {
        allocator_->trim(device, 0);
      }
    }
  }

  // The allocator, for its private pools and statistics.
  PooledAllocator& pooled() {
    refuse_fork();
    return *allocator_;
  }

  void start_counting() {
    ticks_ = allocations_ = 0;
    started_ = Clock::now();
    started_ticks_ = __rdtsc();
    counting_ = true;
  }

  TimeInCalls stop_counting() {
    counting_ = false;
    const auto passed = double(__rdtsc() - started_ticks_);
    const std::chrono::duration<double> seconds = Clock::now() - started_;
    return {double(ticks_) * seconds.count() / passed, allocations_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Adds its lifetime to the counted ticks while counting is on.
  class Timed {
   public:
    explicit Timed(Plug& plug)
        : plug_(plug.counting_ ? &plug : nullptr), began_(plug_ != nullptr ? __rdtsc() : 0) {}
    ~Timed() {
      if (plug_ != nullptr) {
        plug_->ticks_ += __rdtsc() - began_;
      }
    }

   private:
    Plug* plug_;
    uint64_t began_;
  };

  Plug() {
    pthread_atfork(nullptr, nullptr, [] { is_fork() = true; });
    auto allocator = make_allocator(*source_);
    auto* pooled = dynamic_cast<PooledAllocator*>(allocator.get());
    if (pooled == nullptr) {
      throw std::logic_error("plug: expected an allocator with private pools");
    }
    allocator.release();
    allocator_ = pooled;
  }

  static size_t& host_capacity() {
    static size_t bytes = 0;
    return bytes;
  }

  static bool& is_fork() {
    static bool is = false;
    return is;
  }

  // In a fork, locks may be held by threads that do not exist, and there is no CUDA context.
  static void refuse_fork() {
    if (is_fork()) {
      throw std::runtime_error(
          "allocator: expected the process that has used it, got a fork of that; spawn instead");
    }
  }

  void note_use(int device) {
    const uint32_t bit = 1u << device;
    if ((used_.load(std::memory_order_relaxed) & bit) == 0) {
      used_ |= bit;
    }
  }

  static int device_of(const void* ptr) {
    if (host_capacity() > 0) {
      return 0;
    }
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, ptr), "cudaPointerGetAttributes");
    return attributes.device;
  }

  static size_t total_of(int device) {
    if (host_capacity() > 0) {
      return host_capacity();
    }
    int before = 0;
    size_t free = 0, total = 0;
    check(cudaGetDevice(&before), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
    const cudaError_t status = cudaMemGetInfo(&free, &total);
    check(cudaSetDevice(before), "cudaSetDevice");
    check(status, "cudaMemGetInfo");
    return total;
  }

  static std::unique_ptr<MemorySource> make_source() {
    if (host_capacity() > 0) {
      return std::make_unique<HostSource>(host_capacity());
    }
    return std::make_unique<DriverSource>();
  }

  std::unique_ptr<MemorySource> source_ = make_source();
  PooledAllocator* allocator_;
  std::atomic<uint32_t> used_{0};  // one bit per device
  std::atomic<bool> counting_{false};
  std::atomic<uint64_t> ticks_{0}, allocations_{0};
  Clock::time_point started_;
  uint64_t started_ticks_ = 0;
};
