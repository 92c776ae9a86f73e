// CPU threads pack a list's pieces into pinned staging memory with stores that bypass the caches,
// and one copy moves them all.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../common/memory.h"
#include "../common/moves/transfer.h"

// CPUs that this process may use.
int usable_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

// Copies past the CPU's caches if both sides are aligned: the destination is not read again.
void stream_copy(uint8_t* to, const uint8_t* from, int64_t bytes) {
#if defined(__SSE2__)
  constexpr int64_t kVector = sizeof(__m128i);
  if ((reinterpret_cast<uintptr_t>(to) | static_cast<uintptr_t>(bytes)) % kVector == 0) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    for (int64_t i = 0; i < bytes / kVector; ++i) {
      _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
    }
    return;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

// Orders streaming stores before whatever lets another thread or device read them.
void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

constexpr int64_t kMinPartBytes = 32768;  // fewer are packed sooner than a thread wakes up

// Only packed device memory can be reached: one copy moves all pieces.
class ListPacked : public Method {
 public:
  explicit ListPacked(const Pieces& moved) : Method(moved) {
    pieces.require_packed_device();
    const int64_t wanted = pieces.threads > 0 ? pieces.threads : usable_cpus();
    const int64_t useful = std::max<int64_t>(1, pieces.bytes() / kMinPartBytes);
    parts_ = std::min({wanted, pieces.count, useful});
    for (int64_t part = 1; part < parts_; ++part) {
      workers_.emplace_back([this, part] { work(part); });
    }
  }
  ~ListPacked() override {
    is_closing_ = true;
    begin();
    for (std::thread& worker : workers_) {
      worker.join();
    }
  }

  void launch(cudaStream_t stream) override {
    if (pieces.to_device) {
      pack_all();
      copy(pieces.device, staging_.get(), stream);
      return;
    }
    copy(staging_.get(), pieces.device, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    pack_all();
  }

 private:
  void copy(void* to, const void* from, cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(pieces.bytes()), pieces.kind(), stream),
          "cudaMemcpyAsync");
  }

  void begin() {
    launch_.fetch_add(1, std::memory_order_release);
    launch_.notify_all();
  }

  // Waits for the workers by spinning: they need less time than a sleeping thread to wake up.
  void pack_all() {
    left_.store(parts_ - 1, std::memory_order_relaxed);
    begin();
    pack(0);
    while (left_.load(std::memory_order_acquire) > 0) {
    }
  }

  void work(int64_t part) {
    for (uint64_t seen = 0;; ++seen) {
      launch_.wait(seen, std::memory_order_acquire);
      if (is_closing_) {
        return;
      }
      pack(part);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  void pack(int64_t part) const {
    const int64_t last = pieces.count * (part + 1) / parts_;
    for (int64_t i = pieces.count * part / parts_; i < last; ++i) {
      uint8_t* packed = staging_.get() + i * pieces.size;
      if (pieces.to_device) {
        stream_copy(packed, pieces.on_host(i), pieces.size);
      } else {
        stream_copy(pieces.on_host(i), packed, pieces.size);
      }
    }
    end_stream();
  }

  const std::shared_ptr<uint8_t[]> staging_ = pinned<uint8_t>(static_cast<size_t>(pieces.bytes()));
  int64_t parts_ = 1;
  std::vector<std::thread> workers_;
  std::atomic<uint64_t> launch_{0};
  std::atomic<int64_t> left_{0};
  std::atomic<bool> is_closing_{false};
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListPacked>(pieces);
}
