// A running kernel takes its work from a queue in host memory; nothing is launched.
#include <cuda/atomic>

#include "../common/sm_count.h"
#include "batch.h"
#include "kernel.h"

namespace {

constexpr int kThreads = 512;  // of a block; each SM runs one
constexpr uint32_t kMaxDescriptorsPerFetch = kThreads;
constexpr int64_t kIdleCycles = 1 << 30;  // without work for half a second, the kernel ends
// The host expects an answer within microseconds. It suspects that the kernel has ended after the
// first of these times, and gives up after the second.
constexpr std::chrono::milliseconds kSuspectAfter{1};
constexpr std::chrono::seconds kTimeout{5};

using HostWord = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
using DeviceWord = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

// Words in pinned memory, each in a separate cache line; they hold the number of a batch.
struct Mailbox {
  alignas(128) uint64_t posted;  // by the host
  alignas(128) uint64_t ready;   // the kernel runs and waits for it
  alignas(128) uint64_t done;    // all blocks have unpacked it
};

// Arguments of the running kernel. All batches of a receive have the same `batch`.
struct ServeArguments {
  Batch batch;
  Mailbox* mailbox;
  // Words in device memory, 0 when the kernel starts.
  uint32_t* started_blocks;
  uint32_t* is_posted;
  uint32_t* done_blocks;
};
constexpr size_t kCounters = 3;

// The last block to arrive writes `value` to the host's word. Each block releases its writes to the
// last one, and that one all of them to the host, so no further fence is needed.
__device__ void signal_if_last(uint32_t* counter, uint64_t& word, uint64_t value) {
  __syncthreads();
  if (threadIdx.x == 0) {
    DeviceWord arrived(*counter);
    if (arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
      HostWord(word).store(value, cuda::memory_order_release);
    }
  }
}

// Polls `condition` until it holds or kIdleCycles have passed; returns its last value.
template <typename Condition>
__device__ bool poll_until(Condition condition) {
  const int64_t deadline = clock64() + kIdleCycles;
  bool holds;
  do {
    holds = condition();
  } while (!holds && clock64() < deadline);
  return holds;
}

// Waits until batch `number` is posted; false if it was not in time, for all threads of the block.
// Only block 0 polls the host and notifies the others: reads of one host word by all blocks would
// queue behind each other.
__device__ bool wait_for_batch(const ServeArguments& arguments, uint64_t number) {
  __shared__ bool is_posted;
  if (threadIdx.x == 0) {
    DeviceWord notification(*arguments.is_posted);
    if (blockIdx.x == 0) {
      HostWord word(arguments.mailbox->posted);
      is_posted = poll_until([&] { return word.load(cuda::memory_order_acquire) >= number; });
      notification.store(is_posted, cuda::memory_order_release);
    } else {
      is_posted = poll_until([&] { return notification.load(cuda::memory_order_acquire) != 0; });
    }
  }
  __syncthreads();
  return is_posted;
}

// Each block unpacks runs of adjacent fragments, so that the loads of their descriptors coalesce.
__device__ void unpack_share(const Batch& batch) {
  __shared__ Descriptor fetched[kMaxDescriptorsPerFetch];
  const uint32_t team = min(1U << batch.team_log2, static_cast<uint32_t>(kThreads));
  const uint32_t run = min((batch.count + gridDim.x - 1) / gridDim.x, kMaxDescriptorsPerFetch);
  for (uint32_t first = blockIdx.x * run; first < batch.count; first += gridDim.x * run) {
    const uint32_t fragments = min(run, batch.count - first);
    __syncthreads();
    if (threadIdx.x < fragments) {
      fetched[threadIdx.x] = batch.descriptors[first + threadIdx.x];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x / team; i < fragments; i += kThreads / team) {
      WidestAccess::copy(share_of(batch.bounce, batch.dst, fetched[i], threadIdx.x % team, team));
    }
  }
}

// Serves a single batch. A kernel that never ended would block every cudaDeviceSynchronize of the
// process.
__global__ void __launch_bounds__(kThreads) serve(ServeArguments arguments, uint64_t number) {
  signal_if_last(arguments.started_blocks, arguments.mailbox->ready, number);
  if (wait_for_batch(arguments, number)) {
    unpack_share(arguments.batch);
    signal_if_last(arguments.done_blocks, arguments.mailbox->done, number);
  }
}

class PersistentQueue : public Path {
 public:
  explicit PersistentQueue(const Receive& receive)
      : receive_(receive), queue_(pinned<Descriptor>(receive.descriptors)) {
    mailbox_[0] = {};
  }

  // A running kernel still uses the memory that is freed next.
  ~PersistentQueue() override { cudaStreamSynchronize(stream_.get()); }

  bool waits() const override { return true; }

  bool must_get_ready() const override { return true; }

  void get_ready() override {
    if (!is_running_) {
      ++number_;
      start();
      await(mailbox_[0].ready);
    }
  }

  void unpack(cudaStream_t /*stream*/, PartTimer& timer) override {
    gather_descriptors(receive_, queue_.get());
    timer.lap(kBatch);
    number_ += is_running_ ? 0 : 1;
    HostWord(mailbox_[0].posted).store(number_, cuda::memory_order_release);
    if (!is_running_) {
      start();  // its batch is already posted
    }
    timer.lap(kLaunch);
    await(mailbox_[0].done);
    is_running_ = false;
    timer.lap(kWait);
  }

 private:
  void start() {
    const Batch batch{receive_.bounce, receive_.dst, queue_.get(), receive_.descriptors,
                      team_log2(receive_.bytes, receive_.descriptors)};
    uint32_t* counters = counters_.get();
    check(cudaMemsetAsync(counters, 0, kCounters * sizeof(uint32_t), stream_.get()),
          "cudaMemsetAsync");
    const ServeArguments arguments{batch, mailbox_.get(), counters, counters + 1, counters + 2};
    serve<<<blocks_, kThreads, 0, stream_.get()>>>(arguments, number_);
    check(cudaGetLastError(), "kernel launch");
    is_running_ = true;
  }

  void await(uint64_t& word) {
    const auto suspicion = std::chrono::steady_clock::now() + kSuspectAfter;
    const auto deadline = suspicion + kTimeout;
    while (HostWord(word).load(cuda::memory_order_acquire) < number_) {
      const auto now = std::chrono::steady_clock::now();
      if (now > deadline) {
        throw std::runtime_error("the persistent kernel does not answer");
      }
      if (now > suspicion && cudaStreamQuery(stream_.get()) == cudaSuccess &&
          HostWord(word).load(cuda::memory_order_acquire) < number_) {
        start();  // it ended for lack of work, perhaps after some blocks had finished
      }
    }
  }

  const Receive& receive_;
  std::shared_ptr<Descriptor[]> queue_;
  std::shared_ptr<Mailbox[]> mailbox_ = pinned<Mailbox>(1);
  std::shared_ptr<uint32_t[]> counters_ = on_device<uint32_t>(kCounters);
  std::shared_ptr<CUstream_st> stream_ = new_stream();
  int blocks_ = sm_count();
  uint64_t number_ = 0;
  bool is_running_ = false;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<PersistentQueue>(receive);
}
