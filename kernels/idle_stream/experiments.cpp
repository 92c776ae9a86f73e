// Experiments on one batched call on an idle stream: does it copy the data itself, does it use the
// SMs, where does the CPU spend its time, and up to which size of a piece is it slow?
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "../common/launch.h"
#include "events.h"
#include "list_batch.h"
#include "step.h"

const Memory kMemory = Memory::kPinned;

namespace {

constexpr int64_t kChanged = 64;           // pieces that the caller changes after the call
constexpr int kOccupyingCopies = 40;       // keep the copy engine busy meanwhile
constexpr long long kHoldNs = 20'000'000;  // SMs are released after this time
constexpr unsigned kLookNs = 20'000;
constexpr int kHoldingThreads = 1024;  // half of what an SM can hold
constexpr int kTimes = 5;
constexpr double kProfiledSeconds = 0.5;  // of calls, which are sampled every millisecond
constexpr int kMaxPcs = 4096;
constexpr int64_t kLowBytes = 512;
constexpr int64_t kHighBytes = 65536;
constexpr int64_t kStepBytes = 16;
constexpr int64_t kBoundPieces = 256;

std::array<uintptr_t, kMaxPcs> sampled_pcs;
std::atomic<int> sampled{0};

void sample_pc(int, siginfo_t*, void* context) {
  const int at = sampled.fetch_add(1);
  if (at < kMaxPcs) {
#if defined(__x86_64__)
    sampled_pcs[at] =
        static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
    sampled_pcs[at] = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#endif
  }
}

double cpu_seconds(const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; }

}  // namespace

// One thread of a block looks, and seldom: all of them would keep the link busy with their reads.
__global__ void hold_sms(const volatile int* is_released) {
  if (threadIdx.x == 0) {
    unsigned long long start = 0;
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
      __nanosleep(kLookNs);
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*is_released == 0 && now - start < kHoldNs);
  }
  __syncthreads();
}

class Cause : public ListBatch {
 public:
  explicit Cause(const Pieces& moved) : ListBatch(moved) {
    check(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaHostAlloc(&latch_, sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
  }
  ~Cause() override {
    cudaStreamDestroy(other_);
    cudaFreeHost(latch_);
  }

  void launch(cudaStream_t stream) override { copy_all(stream); }

  std::map<std::string, std::vector<double>> samples(cudaStream_t stream) override {
    std::map<std::string, std::vector<double>> found;
    if (pieces.to_device) {
      found["old_share"] = {share_of_old_pieces(stream)};
      profile(stream, found);
    }
    found["held_slowdown"] = {seconds_with_sms_held(stream) /
                              seconds_of([&] { copy_all(stream); }, stream)};
    const auto batch = [&](int64_t size) { return batch_of(size, stream); };
    const auto loop = [&](int64_t size) { return loop_of(size, stream); };
    found["bound_bytes"] = {bound(batch)};
    found["loop_bound_bytes"] = {bound(loop)};
    return found;
  }

 private:
  static void wait_for(cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  // Median seconds of a call until the stream is idle again.
  template <class Call>
  double seconds_of(const Call& call, cudaStream_t stream) const {
    std::array<double, kTimes> seconds{};
    for (double& each : seconds) {
      const auto start = Clock::now();
      call();
      wait_for(stream);
      each = seconds_since(start);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[kTimes / 2];
  }

  // The copy engine is busy for another stream when the call is made, and the caller changes the
  // pieces right after it returns. Share of pieces that arrive unchanged; -1 if the engine was not
  // busy until then.
  double share_of_old_pieces(cudaStream_t stream) {
    const int64_t changed = std::min(kChanged, pieces.count);
    const auto size = static_cast<size_t>(pieces.size);
    const size_t span = static_cast<size_t>(pieces.bytes());
    std::vector<uint8_t> old(changed * size);
    std::vector<uint8_t> arrived(size);
    for (int64_t i = 0; i < changed; ++i) {
      std::memcpy(old.data() + i * size, host_at(i), size);
    }
    void* scratch = nullptr;
    check(cudaMalloc(&scratch, span), "cudaMalloc");
    for (int k = 0; k < kOccupyingCopies; ++k) {
      check(cudaMemcpyAsync(scratch, pieces.host, span, cudaMemcpyHostToDevice, other_),
            "cudaMemcpyAsync");
    }
    copy(0, static_cast<size_t>(changed), stream);
    for (int64_t i = 0; i < changed; ++i) {
      for (int64_t byte = 0; byte < pieces.size; ++byte) {
        host_at(i)[byte] = static_cast<uint8_t>(~host_at(i)[byte]);
      }
    }
    const bool was_busy = cudaStreamQuery(other_) == cudaErrorNotReady;
    wait_for(stream);
    wait_for(other_);
    int64_t unchanged = 0;
    for (int64_t i = 0; i < changed; ++i) {
      check(cudaMemcpy(arrived.data(), device_at(i), size, cudaMemcpyDeviceToHost), "cudaMemcpy");
      unchanged += std::memcmp(arrived.data(), old.data() + i * size, size) == 0;
      std::memcpy(host_at(i), old.data() + i * size, size);
    }
    check(cudaFree(scratch), "cudaFree");
    return was_busy ? static_cast<double>(unchanged) / static_cast<double>(changed) : -1;
  }

  // A kernel occupies every SM until the call's copies are done, but for kHoldNs at most.
  double seconds_with_sms_held(cudaStream_t stream) {
    int device = 0;
    int sms = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device),
          "cudaDeviceGetAttribute");
    volatile int* latch = static_cast<int*>(latch_);
    std::array<double, kTimes> seconds{};
    for (double& each : seconds) {
      *latch = 0;
      hold_sms<<<2 * sms, kHoldingThreads, 0, other_>>>(latch);
      check(cudaGetLastError(), "hold_sms");
      const auto launched = Clock::now();
      while (seconds_since(launched) < 50e-6) {  // until it runs everywhere
      }
      const auto start = Clock::now();
      copy_all(stream);
      wait_for(stream);
      each = seconds_since(start);
      *latch = 1;
      wait_for(other_);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[kTimes / 2];
  }

  // Where the calling thread is, every millisecond of CPU time during calls on an idle stream.
  void profile(cudaStream_t stream, std::map<std::string, std::vector<double>>& found) {
    struct sigaction action{};
    struct sigaction previous{};
    action.sa_sigaction = sample_pc;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sampled = 0;
    sigaction(SIGPROF, &action, &previous);
    itimerval every{{0, 1000}, {0, 1000}};
    const itimerval never{};
    double in_user = 0;
    double in_system = 0;
    for (double spent = 0; spent < kProfiledSeconds;) {
      rusage before{};
      rusage after{};
      const auto start = Clock::now();
      getrusage(RUSAGE_THREAD, &before);
      setitimer(ITIMER_PROF, &every, nullptr);
      copy_all(stream);
      setitimer(ITIMER_PROF, &never, nullptr);
      getrusage(RUSAGE_THREAD, &after);
      spent += seconds_since(start);
      in_user += cpu_seconds(after.ru_utime) - cpu_seconds(before.ru_utime);
      in_system += cpu_seconds(after.ru_stime) - cpu_seconds(before.ru_stime);
      wait_for(stream);
    }
    sigaction(SIGPROF, &previous, nullptr);
    if (in_user + in_system > 0) {
      found["system_share"] = {in_system / (in_user + in_system)};
    }
    const int taken = std::min(sampled.load(), kMaxPcs);
    if (taken == 0) {
      return;
    }
    std::map<std::string, int> libraries;
    std::map<uintptr_t, int> places;
    for (int i = 0; i < taken; ++i) {
      Dl_info where{};
      const bool is_known = dladdr(reinterpret_cast<void*>(sampled_pcs[i]), &where) != 0;
      const std::string library = is_known && where.dli_fname ? where.dli_fname : "";
      const bool is_driver = library.find("libcuda.so") != std::string::npos;
      const bool is_libc = library.find("libc.so") != std::string::npos;
      ++libraries[is_driver ? "driver" : is_libc ? "libc" : "other"];
      ++places[sampled_pcs[i] / kPlaceBytes];
    }
    int hottest = 0;
    for (const auto& [place, count] : places) {
      hottest = std::max(hottest, count);
    }
    found["driver_share"] = {static_cast<double>(libraries["driver"]) / taken};
    found["libc_share"] = {static_cast<double>(libraries["libc"]) / taken};
    found["hottest_share"] = {static_cast<double>(hottest) / taken};
  }

  // Seconds of a call, until it returns, for kBoundPieces pieces of `size` bytes.
  double batch_of(int64_t size, cudaStream_t stream) {
    std::vector<const void*> from;
    std::vector<void*> to;
    const std::vector<size_t> sizes(bound_pieces(), static_cast<size_t>(size));
    ends(from, to);
    return submit_seconds(
        [&] {
#if CUDART_VERSION >= 13000
          cudaMemcpyAttributes attributes{};
          attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
          size_t first = 0;
          check(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), sizes.size(),
                                     &attributes, &first, 1, stream),
                "cudaMemcpyBatchAsync");
#endif
        },
        stream);
  }
  double loop_of(int64_t size, cudaStream_t stream) {
    std::vector<const void*> from;
    std::vector<void*> to;
    ends(from, to);
    return submit_seconds(
        [&] {
          for (size_t i = 0; i < to.size(); ++i) {
            check(cudaMemcpyAsync(to[i], from[i], static_cast<size_t>(size), pieces.kind(), stream),
                  "cudaMemcpyAsync");
          }
        },
        stream);
  }

  // As many pieces of kHighBytes as fit into the memory of the case.
  size_t bound_pieces() const {
    return static_cast<size_t>(std::clamp<int64_t>(pieces.bytes() / kHighBytes, 1, kBoundPieces));
  }
  void ends(std::vector<const void*>& from, std::vector<void*>& to) const {
    for (size_t i = 0; i < bound_pieces(); ++i) {
      uint8_t* on_host = pieces.host + i * kHighBytes;
      uint8_t* on_device = pieces.device + i * kHighBytes;
      from.push_back(pieces.to_device ? on_host : on_device);
      to.push_back(pieces.to_device ? on_device : on_host);
    }
  }

  template <class Call>
  double submit_seconds(const Call& call, cudaStream_t stream) const {
    std::array<double, kTimes> seconds{};
    for (double& each : seconds) {
      wait_for(stream);
      const auto start = Clock::now();
      call();
      each = seconds_since(start);
    }
    wait_for(stream);
    std::sort(seconds.begin(), seconds.end());
    return seconds[kTimes / 2];
  }

  // The largest size whose call takes twice as long as that of kHighBytes; 0 if there is none.
  template <class Seconds>
  static double bound(const Seconds& seconds) {
    const double limit = 2 * seconds(kHighBytes);
    // Tests sizes in steps of two, then bisects above the largest that is slow.
    int64_t slow = 0;
    for (int64_t size = kLowBytes; size < kHighBytes; size *= 2) {
      if (seconds(size) > limit) {
        slow = size;
      }
    }
    if (slow == 0) {
      return 0;
    }
    int64_t fast = 2 * slow;
    while (fast - slow > kStepBytes) {
      const int64_t middle = (slow + fast) / 2 / kStepBytes * kStepBytes;
      (seconds(middle) > limit ? slow : fast) = middle;
    }
    return static_cast<double>(slow);
  }

  static constexpr uintptr_t kPlaceBytes = 256;

  cudaStream_t other_ = nullptr;
  void* latch_ = nullptr;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Cause>(pieces); }
