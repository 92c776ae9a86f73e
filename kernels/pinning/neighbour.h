// A thread that makes one kind of CUDA call again and again, and the time of every call.
#pragma once

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../common/memory.h"
#include "driver_call.h"
#include "pinned_memory.h"

constexpr size_t kCopiedBytes = 4096;
constexpr size_t kAllocatedBytes = size_t{4} << 20;  // more than CUDA divides among allocations
constexpr size_t kMaxTimes = size_t{1} << 22;        // two a call
constexpr int kFirstCalls = 100;                     // are slow, and are dropped

// An empty kernel. The driver compiles it when it is loaded.
constexpr char kEmptyKernel[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

class Neighbour {
 public:
  // Starts the thread. `calls` is "copy", "launch", "malloc" or "info". Throws
  // std::invalid_argument for another word, std::runtime_error with CUDA's message.
  explicit Neighbour(const std::string& calls) : times_(kMaxTimes) {
    if (calls == "copy") {
      host_ = pinned<char>(kCopiedBytes);
      device_ = on_device<char>(kCopiedBytes);
      call_ = [this] { time([this] { copy(); }); };
    } else if (calls == "launch") {
      load_kernel();
      call_ = [this] { time([this] { launch(); }); };
    } else if (calls == "malloc") {
      call_ = [this] { allocate_and_free(); };
    } else if (calls == "info") {
      call_ = [this] { time([this] { query(); }); };
    } else {
      throw std::invalid_argument("calls: expected copy, launch, malloc or info, got " + calls);
    }
    stream_ = new_stream();
    for (int i = 0; i < kFirstCalls; ++i) {
      call_();
    }
    count_ = 0;
    int gpu = 0;
    check(cudaGetDevice(&gpu), "the current device");
    thread_ = std::thread([this, gpu] { run(gpu); });
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  ~Neighbour() {
    end();
    if (module_ != nullptr) {
      unload_(module_);
    }
  }

  // Ends the thread. Returns begin and end of every call in ns, in order. Throws what a call threw.
  std::vector<int64_t> stop() {
    end();
    if (error_) {
      std::rethrow_exception(error_);
    }
    return {times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(count_)};
  }

 private:
  void run(int gpu) {
    try {
      check(cudaSetDevice(gpu), "the device of a thread");
      while (!stops_ && count_ + 4 <= times_.size()) {
        call_();
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void end() {
    stops_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  template <class Call>
  void time(const Call& call) {
    times_[count_] = now_ns();
    call();
    times_[count_ + 1] = now_ns();
    count_ += 2;
  }

  void copy() {
    check(cudaMemcpyAsync(device_.get(), host_.get(), kCopiedBytes, cudaMemcpyHostToDevice,
                          stream_.get()),
          "a copy of the neighbour");
    check(cudaStreamSynchronize(stream_.get()), "a copy of the neighbour");
  }

  void launch() {
    check_driver(launch_(kernel_, 1, 1, 1, 32, 1, 1, 0, stream_.get(), nullptr, nullptr),
                 "a launch of the neighbour");
    check(cudaStreamSynchronize(stream_.get()), "a launch of the neighbour");
  }

  // Two calls. A lock that one of them does not wait for, the other may.
  void allocate_and_free() {
    void* found = nullptr;
    time([&] { check(cudaMalloc(&found, kAllocatedBytes), "cudaMalloc of the neighbour"); });
    time([&] { check(cudaFree(found), "cudaFree of the neighbour"); });
  }

  void query() {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo of the neighbour");
  }

  void load_kernel() {
    check(cudaFree(nullptr), "the context");
    const PFN_cuModuleLoadData_v2000 load = driver_call("cuModuleLoadData");
    const PFN_cuModuleGetFunction_v2000 find = driver_call("cuModuleGetFunction");
    unload_ = driver_call("cuModuleUnload");
    launch_ = driver_call("cuLaunchKernel");
    check_driver(load(&module_, kEmptyKernel), "cuModuleLoadData");
    check_driver(find(&kernel_, module_, "empty"), "cuModuleGetFunction");
  }

  std::shared_ptr<char[]> host_, device_;
  std::shared_ptr<CUstream_st> stream_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  PFN_cuModuleUnload_v2000 unload_ = nullptr;
  PFN_cuLaunchKernel_v4000 launch_ = nullptr;
  std::function<void()> call_;
  std::vector<int64_t> times_;
  size_t count_ = 0;
  std::atomic<bool> stops_{false};
  std::exception_ptr error_;
  std::thread thread_;
};
