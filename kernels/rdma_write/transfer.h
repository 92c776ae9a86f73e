// What a variant is given: devices with pages to write, and where to tell how far it is. The server
// owns all of it.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fabric.h"
#include "messages.h"

constexpr uint64_t kReportEvery = 16384;  // completions of a device

// One endpoint of a device, the peer's endpoint, and the memory of both.
struct Rail {
  std::unique_ptr<Endpoint> endpoint;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  RemoteRegion remote{};
  Region source{};
};

// One write of a page: by which rail, from where, and to which address as the peer's region names
// it.
struct Write {
  size_t rail;
  const uint8_t* source;
  uint64_t remote_address;
};

// A simulated accelerator: pages in host memory, and rails to send them by. One thread's at a time,
// which writes to `page` all the while, so no two share a cache line.
struct alignas(64) Device {
  size_t index;
  std::vector<Rail> rails;
  std::vector<uint8_t> memory;
  const RandomFill* fill = nullptr;
  uint64_t page = 0;  // the next one

  // The last page of every rail is left, to be written with immediate data.
  uint64_t writes() const { return fill->destinations.size() - rails.size(); }
  bool has_next() const { return page < writes(); }
  Write next() { return write_of(page++); }
  Write write_of(uint64_t i) const {
    const size_t rail = i % rails.size();
    return {rail, memory.data() + i * fill->page_bytes,
            rails[rail].remote.address + fill->destinations[i] * fill->page_bytes};
  }
};

// Progress on the terminal: what was posted and finished, and the rate since the start. Any thread
// may report.
class Progress {
 public:
  Progress(bool is_shown, uint64_t writes, uint64_t page_bytes)
      : is_shown_(is_shown), writes_(writes), page_bytes_(page_bytes) {}

  void report(uint64_t posted, uint64_t finished) const {
    if (!is_shown_) {
      return;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double rate = static_cast<double>(finished) / elapsed.count();
    std::fprintf(stderr,
                 "[%7.3f s] posted %llu, finished %llu of %llu writes, %.1f MB, %.3f GB/s, "
                 "%.3f Mpps\n",
                 elapsed.count(), static_cast<unsigned long long>(posted),
                 static_cast<unsigned long long>(finished),
                 static_cast<unsigned long long>(writes_),
                 static_cast<double>(finished * page_bytes_) / 1e6,
                 rate * static_cast<double>(page_bytes_) / 1e9, rate / 1e6);
  }

 private:
  bool is_shown_;
  uint64_t writes_;
  uint64_t page_bytes_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Transfer {
  std::vector<Device>& devices;
  uint64_t writes;  // of all devices
  Limits& limits;
  const Progress& progress;
  const std::vector<int>& cores;  // one a device
};

// Writes every page that the devices have next; returns when all of them are complete. Each variant
// defines it, and may start threads, which end before it returns. It throws what its threads throw:
// FabricError, TimedOut.
void write_pages(Transfer& transfer);

// Whether the endpoints count complete writes: not where a variant defines nothing else.
bool counts_writes();

// Keeps the calling thread on this core; throws std::runtime_error where it may not run there.
inline void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  const int status = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (status != 0) {
    throw std::runtime_error("pinning to core " + std::to_string(core) + ": " + strerror(status));
  }
}

// Calls work(i) in a thread for each i below `count` and returns when all have ended. The first
// error sets limits.stop, which ends the others at their next wait, and is thrown.
template <typename Work>
void in_threads(size_t count, Limits& limits, const Work& work) {
  std::exception_ptr error;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (const Stopped&) {
        } catch (...) {
          limits.stop = true;
          const std::lock_guard lock(mutex);
          error = error ? error : std::current_exception();
        }
      });
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}
