// Experiments on a gather beside other work: which of the two slows down, and how long do a read of
// host memory and an empty launch take meanwhile?
#include <array>
#include <chrono>
#include <functional>

#include "gather_at_once.h"

constexpr int kRepetitions = 3;
constexpr int kTimed = 2;                      // runs of the timed part
constexpr double kBatchSeconds = 2e-3;         // of a neighbour's batch, at least
constexpr size_t kLargeOut = size_t{1} << 27;  // a copy so large that its commands cost little
constexpr int64_t kReadBytes = int64_t{1} << 24;
constexpr int kReadsBefore = 16;  // untimed reads
constexpr int kReads = 64;

// One thread reads lines of host memory, each after the previous one has arrived, and writes the
// time of kReads of them. The words are zeros, which the compiler cannot know.
__global__ void read_in_turn(const volatile uint32_t* words, int64_t line,
                             unsigned long long* nanoseconds) {
  constexpr int64_t kLineWords = 32;
  constexpr int64_t kLines = kReadBytes / 4 / kLineWords;
  constexpr int64_t kStride = 1031;  // in lines: no line twice, and none beside the last
  unsigned long long start = 0;
  unsigned long long end = 0;
  for (int i = 0; i < kReadsBefore + kReads; ++i) {
    if (i == kReadsBefore) {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start)::"memory");
    }
    line = (line + kStride + words[line * kLineWords]) % kLines;
  }
  // The last address is stored, so that the end is taken after the last read.
  nanoseconds[1] = static_cast<unsigned long long>(line);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end)::"memory");
  nanoseconds[0] = end - start;
}

__global__ void do_nothing() {}

using Work = std::function<void(cudaStream_t)>;

// Work that never pauses: its stream always has two batches to do.
class Neighbour {
 public:
  Neighbour(const Work& work, cudaStream_t stream, int batch)
      : work_(work), stream_(stream), batch_(batch) {
    add();
    add();
    check(cudaEventSynchronize(ended_[older_].get()), "cudaEventSynchronize");
    add();
  }
  void refill() {
    if (cudaEventQuery(ended_[older_].get()) == cudaSuccess) {
      add();
    }
  }
  bool is_running() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }

 private:
  void add() {
    for (int i = 0; i < batch_; ++i) {
      work_(stream_);
    }
    check(cudaEventRecord(ended_[older_].get(), stream_), "cudaEventRecord");
    older_ = 1 - older_;
  }

  const Work& work_;
  cudaStream_t stream_;
  int batch_;
  std::array<std::shared_ptr<CUevent_st>, 2> ended_{new_event(), new_event()};
  int older_ = 0;
};

class Neighbours : public GatherAtOnce {
 public:
  explicit Neighbours(const Pieces& moved)
      : GatherAtOnce(moved), bytes_(static_cast<size_t>(pieces.bytes())) {
    std::fill_n(words_.get(), kReadBytes / 4, 0U);
  }

  Samples samples(cudaStream_t stream) override {
    const Work gather = [this](cudaStream_t on) { ListGather::launch(on); };
    const Work out = [this](cudaStream_t on) { copy_out(pieces, on); };
    const Work large_out =
        copy(large_landing_.get(), large_source_.get(), kLargeOut, cudaMemcpyDeviceToHost);
    const Work within = copy(scratch_.get(), pieces.source, bytes_, cudaMemcpyDeviceToDevice);
    Samples found;
    for (int turn = 0; turn < kRepetitions; ++turn) {
      std::map<std::string, double> figures;
      figures["gather_alone"] = alone(gather, stream);
      figures["gather_kept_by_out"] = kept(gather, out, stream);
      figures["out_beside_gather"] = seconds_beside(out, gather, stream);
      figures["out_kept_by_gather"] = alone(out, stream) / figures["out_beside_gather"];
      figures["large_out_kept_by_gather"] = kept(large_out, gather, stream);
      figures["within_kept_by_gather"] = kept(within, gather, stream);
      figures["read_latency"] = read_seconds(stream);
      figures["launch_time"] = launch_seconds(stream);
      beside(gather, stream, [&] { start_read(stream); });
      figures["read_latency_by_gather"] = read_seconds();
      beside(gather, stream, [&] { figures["launch_time_by_gather"] = launch_seconds(stream); });
      for (const auto& [metric, value] : figures) {
        if (turn > 0) {  // the first turn warms up
          found[metric].push_back(value);
        }
      }
    }
    return found;
  }

 private:
  static Work copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return [=](cudaStream_t on) {
      check(cudaMemcpyAsync(to, from, bytes, kind, on), "cudaMemcpyAsync");
    };
  }

  // Enqueues `work` between two events, after one untimed run.
  static void enqueue(const Work& work, cudaStream_t stream, Event& start, Event& end) {
    work(stream);
    start.record(stream);
    for (int i = 0; i < kTimed; ++i) {
      work(stream);
    }
    end.record(stream);
  }

  // Device time of `work`.
  static double alone(const Work& work, cudaStream_t stream) {
    Event start;
    Event end;
    enqueue(work, stream, start, end);
    return end.since(start) / kTimed;
  }

  // Device time of `work` while `neighbour` runs.
  double seconds_beside(const Work& work, const Work& neighbour, cudaStream_t stream) const {
    Event start;
    Event end;
    beside(neighbour, stream, [&] { enqueue(work, stream, start, end); });
    return end.since(start) / kTimed;
  }

  // Rate of `work` while `neighbour` runs, over its rate alone.
  double kept(const Work& work, const Work& neighbour, cudaStream_t stream) const {
    return alone(work, stream) / seconds_beside(work, neighbour, stream);
  }

  void start_read(cudaStream_t stream) const {
    read_in_turn<<<1, 1, 0, stream>>>(words_.get(), line_, taken_.get());
    check(cudaGetLastError(), "read_in_turn");
  }

  // Seconds of one read by the kernel that has ended. The next one goes on from its last line.
  double read_seconds() {
    line_ = static_cast<int64_t>(taken_[1]);
    return static_cast<double>(taken_[0]) * 1e-9 / kReads;
  }
  double read_seconds(cudaStream_t stream) {
    start_read(stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return read_seconds();
  }

  // Host time of an empty kernel and the wait for it.
  static double launch_seconds(cudaStream_t stream) {
    const auto start = std::chrono::steady_clock::now();
    do_nothing<<<1, 1, 0, stream>>>();
    check(cudaGetLastError(), "do_nothing");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Calls `enqueue` while `work` runs on another stream, and keeps it running until `stream` is
  // idle. Throws std::runtime_error if it has ended before.
  template <class Enqueue>
  void beside(const Work& work, cudaStream_t stream, const Enqueue& enqueue) const {
    const int batch = static_cast<int>(kBatchSeconds / alone(work, beside_.get())) + 1;
    Neighbour neighbour(work, beside_.get(), batch);
    enqueue();
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      neighbour.refill();
    }
    const bool has_run = neighbour.is_running();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (!has_run) {
      throw std::runtime_error("the neighbour ended before the work beside it");
    }
  }

  const size_t bytes_;
  const std::shared_ptr<uint8_t[]> large_landing_ = pinned<uint8_t>(kLargeOut);
  const std::shared_ptr<uint8_t[]> large_source_ = on_device<uint8_t>(kLargeOut);
  const std::shared_ptr<uint8_t[]> scratch_ = on_device<uint8_t>(bytes_);
  const std::shared_ptr<uint32_t[]> words_ = pinned<uint32_t>(kReadBytes / 4);
  const std::shared_ptr<unsigned long long[]> taken_ = pinned<unsigned long long>(2);
  const std::shared_ptr<CUstream_st> beside_ = new_stream();
  int64_t line_ = 0;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<Neighbours>(pieces);
}
