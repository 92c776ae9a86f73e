// Input of a variant: devices with pages to write, and a display of progress. The server owns it.
#pragma once

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fabric.h"
#include "messages.h"
#include "threads.h"

constexpr uint64_t kReportEvery = 16384;  // completions of a device

// An endpoint of a device, the peer's endpoint, and the memory of both.
struct Rail {
  std::unique_ptr<Endpoint> endpoint;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  RemoteRegion remote{};
  Region source{};
};

// One write of a page: its rail, its source, and its address in the peer's region.
struct Write {
  size_t rail;
  const uint8_t* source;
  uint64_t remote_address;
};

// A simulated accelerator: pages in host memory, and rails to write them through. Its thread writes
// `page` continually, so each device starts on a new cache line.
struct alignas(64) Device {
  size_t index;
  std::vector<Rail> rails;
  std::vector<uint8_t> memory;
  const RandomFill* fill = nullptr;
  uint64_t page = 0;  // the next one

  // All pages but the last one of each rail, which the server writes with immediate data.
  uint64_t writes() const { return fill->destinations.size() - rails.size(); }
  bool has_next() const { return page < writes(); }
  Write next() { return write_of(page++); }
  Write write_of(uint64_t i) const {
    const size_t rail = i % rails.size();
    return {rail, memory.data() + i * fill->page_bytes,
            rails[rail].remote.address + fill->destinations[i] * fill->page_bytes};
  }
};

// Progress on the terminal: writes posted and finished, and the rate since the start. Thread-safe.
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
  const std::vector<int>& cores;  // [devices]
};

// Writes the remaining pages of all devices and returns once they are complete. Each variant
// defines it. Its threads end before it returns, and it rethrows their error: FabricError,
// TimedOut.
void write_pages(Transfer& transfer);

// Whether the endpoints count completed writes. Defaults to false.
bool counts_writes();
