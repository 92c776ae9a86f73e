// A kernel that is already running is fed through a queue in host memory; nothing is launched.
#include <cuda/atomic>

#include "../common/sm_count.h"
#include "batch.h"
#include "kernel.h"

namespace {

constexpr int kThreads = 512;                  // one block of so many a multiprocessor
constexpr uint32_t kMostFetched = kThreads;    // descriptors a block has fetched at a time
constexpr int64_t kPatienceCycles = 1 << 30;   // unfed for half a second, the kernel ends by itself
constexpr std::chrono::milliseconds kSlow{1};  // an answer takes microseconds
constexpr std::chrono::seconds kPatience{5};

using HostWord = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
using DeviceWord = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

// In pinned memory, each word in a line of its own. `posted` and `done` count batches.
struct Mailbox {
  alignas(128) uint64_t posted;
  alignas(128) uint64_t ready;
  alignas(128) uint64_t done;
};

// `batch.count` and `batch.team_log2` are those of every batch of a receive.
struct Service {
  Batch batch;
  Mailbox* mailbox;
  // In device memory, and 0 when the kernel starts.
  uint32_t* started;  // how many blocks have
  uint32_t* posted;   // whether the batch has been
  uint32_t* through;  // how many blocks are with it
};
constexpr size_t kCounters = 3;

// The last block to arrive tells the host. Each block releases what it wrote to the last one, and
// that all of it to the host, so no further fence is needed.
__device__ void report(uint32_t* counter, uint64_t& word, uint64_t value) {
  __syncthreads();
  if (threadIdx.x == 0) {
    DeviceWord arrived(*counter);
    if (arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
      HostWord(word).store(value, cuda::memory_order_release);
    }
  }
}

// Whether `is_there` comes true before the patience runs out.
template <typename IsThere>
__device__ bool comes(IsThere is_there) {
  const int64_t until = clock64() + kPatienceCycles;
  bool found;
  do {
    found = is_there();
  } while (!found && clock64() < until);
  return found;
}

// Whether batch number `number` has been posted before the patience ran out; for the whole block.
// One block alone asks the host: were all to ask for the same word, they would wait for each other.
__device__ bool is_posted(const Service& service, uint64_t number) {
  __shared__ bool found;
  if (threadIdx.x == 0) {
    DeviceWord told(*service.posted);
    if (blockIdx.x == 0) {
      HostWord word(service.mailbox->posted);
      found = comes([&] { return word.load(cuda::memory_order_acquire) >= number; });
      told.store(found, cuda::memory_order_release);
    } else {
      found = comes([&] { return told.load(cuda::memory_order_acquire) != 0; });
    }
  }
  __syncthreads();
  return found;
}

// Blocks share the fragments out in runs of neighbours, whose descriptors one access fetches.
__device__ void unpack_share(const Batch& batch) {
  __shared__ Descriptor fetched[kMostFetched];
  const uint32_t team = min(1U << batch.team_log2, static_cast<uint32_t>(kThreads));
  const uint32_t run = min((batch.count + gridDim.x - 1) / gridDim.x, kMostFetched);
  for (uint32_t first = blockIdx.x * run; first < batch.count; first += gridDim.x * run) {
    const uint32_t here = min(run, batch.count - first);
    __syncthreads();
    if (threadIdx.x < here) {
      fetched[threadIdx.x] = batch.descriptors[first + threadIdx.x];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x / team; i < here; i += kThreads / team) {
      ByWidth::copy(share_of(batch.bounce, batch.dst, fetched[i], threadIdx.x % team, team));
    }
  }
}

// Serves one batch: the rest of a measured process waits for the whole device now and then, which a
// kernel that never ends would never let it do.
__global__ void __launch_bounds__(kThreads) serve(Service service, uint64_t number) {
  report(service.started, service.mailbox->ready, number);
  if (is_posted(service, number)) {
    unpack_share(service.batch);
    report(service.through, service.mailbox->done, number);
  }
}

class PersistentQueue : public Path {
 public:
  explicit PersistentQueue(const Receive& receive)
      : receive_(receive), queue_(page_locked<Descriptor>(receive.descriptors)) {
    mailbox_[0] = {};
  }

  // A running kernel uses what is freed next.
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

  void unpack(cudaStream_t /*stream*/, Parts& parts) override {
    gather_descriptors(receive_, queue_.get());
    parts.book(kBatch);
    number_ += is_running_ ? 0 : 1;
    HostWord(mailbox_[0].posted).store(number_, cuda::memory_order_release);
    if (!is_running_) {
      start();  // and finds its work waiting
    }
    parts.book(kLaunch);
    await(mailbox_[0].done);
    is_running_ = false;
    parts.book(kWait);
  }

 private:
  void start() {
    const Batch batch{receive_.bounce, receive_.dst, queue_.get(), receive_.descriptors,
                      team_log2(receive_.bytes, receive_.descriptors)};
    uint32_t* counters = counters_.get();
    check(cudaMemsetAsync(counters, 0, kCounters * sizeof(uint32_t), stream_.get()),
          "cudaMemsetAsync");
    const Service service{batch, mailbox_.get(), counters, counters + 1, counters + 2};
    serve<<<blocks_, kThreads, 0, stream_.get()>>>(service, number_);
    check(cudaGetLastError(), "kernel launch");
    is_running_ = true;
  }

  void await(uint64_t& word) {
    const auto slow = std::chrono::steady_clock::now() + kSlow;
    const auto until = slow + kPatience;
    while (HostWord(word).load(cuda::memory_order_acquire) < number_) {
      const auto now = std::chrono::steady_clock::now();
      if (now > until) {
        throw std::runtime_error("the persistent kernel does not answer");
      }
      if (now > slow && cudaStreamQuery(stream_.get()) == cudaSuccess &&
          HostWord(word).load(cuda::memory_order_acquire) < number_) {
        start();  // it ended by itself, perhaps with some blocks through
      }
    }
  }

  const Receive& receive_;
  std::shared_ptr<Descriptor[]> queue_;
  std::shared_ptr<Mailbox[]> mailbox_ = page_locked<Mailbox>(1);
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
