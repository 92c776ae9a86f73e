// Experiments on a gather beside a copy to the host: which of the two slows down, beside what, and
// how long does one read of host memory take meanwhile?
#include <array>
#include <functional>

#include "../common/memory.h"
#include "list_gather.h"
#include "timed_call.h"

const Memory kMemory = Memory::kPinned;

constexpr int64_t kMaxBlocks = 1024;
constexpr int kTurnsOfEach = 3;
constexpr int kTimed = 2;                      // times that the part that is timed runs
constexpr double kBatch = 2e-3;                // seconds of a neighbour's batch, at least
constexpr size_t kLargeOut = size_t{1} << 27;  // copies so large that their commands cost little
constexpr size_t kLargeWithin = size_t{1} << 30;
constexpr int64_t kReadBytes = int64_t{1} << 24;
constexpr int kReadsBefore = 16;  // of the latency's, not timed
constexpr int kReads = 64;

// One thread reads lines of host memory, each after the one before has arrived, and writes the
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

// Work that goes on all the time: its stream has two batches to do.
class Neighbour {
 public:
  Neighbour(Work work, cudaStream_t stream, int batch)
      : work_(std::move(work)), stream_(stream), batch_(batch) {
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

  Work work_;
  cudaStream_t stream_;
  int batch_;
  std::array<std::shared_ptr<CUevent_st>, 2> ended_{new_event(), new_event()};
  int older_ = 0;
};

class DuplexCause : public ListGather {
 public:
  explicit DuplexCause(const Pieces& moved)
      : ListGather(moved, kMaxBlocks),
        bytes_(static_cast<size_t>(pieces.bytes())),
        landed_(pinned<uint8_t>(std::max(bytes_, kLargeOut))),
        words_(pinned<uint32_t>(kReadBytes / 4)),
        taken_(pinned<unsigned long long>(2)),
        first_(on_device<Place>(1)),
        source_(on_device<uint8_t>(std::max(bytes_, kLargeWithin))),
        scratch_(on_device<uint8_t>(std::max(bytes_, kLargeWithin))) {
    std::fill_n(words_.get(), kReadBytes / 4, 0U);
    check(cudaMemset(first_.get(), 0, sizeof(Place)), "cudaMemset");
    check(cudaMemset(source_.get(), 0, std::max(bytes_, kLargeWithin)), "cudaMemset");
  }

  std::map<std::string, std::vector<double>> samples(cudaStream_t stream) override {
    const Work gather = [this](cudaStream_t on) { launch(on); };
    const Work engine_in = copy(pieces.device, pieces.host, bytes_, cudaMemcpyHostToDevice);
    const Work engine_out = copy(landed_.get(), source_.get(), bytes_, cudaMemcpyDeviceToHost);
    const Work large_out = copy(landed_.get(), source_.get(), kLargeOut, cudaMemcpyDeviceToHost);
    const Work within = copy(scratch_.get(), source_.get(), bytes_, cudaMemcpyDeviceToDevice);
    const Work large_within =
        copy(scratch_.get(), source_.get(), kLargeWithin, cudaMemcpyDeviceToDevice);
    const Work kernel_out = [this](cudaStream_t on) { write(landed_.get(), on); };
    const Work kernel_within = [this](cudaStream_t on) { write(scratch_.get(), on); };
    std::map<std::string, std::vector<double>> found;
    for (int turn = 0; turn < kTurnsOfEach; ++turn) {
      std::map<std::string, double> one;
      one["gather_alone"] = alone(gather, stream);
      one["gather_kept_by_out"] = kept(gather, engine_out, stream);
      one["gather_kept_by_kernel"] = kept(gather, kernel_out, stream);
      one["gather_kept_by_within"] = kept(gather, within, stream);
      one["within_kept_by_gather"] = kept(within, gather, stream);
      one["large_within_kept_by_gather"] = kept(large_within, gather, stream);
      one["kernel_within_kept_by_gather"] = kept(kernel_within, gather, stream);
      one["engine_kept_by_out"] = kept(engine_in, engine_out, stream);
      one["engine_kept_by_kernel"] = kept(engine_in, kernel_out, stream);
      one["out_beside_gather"] = seconds_beside(engine_out, gather, stream);
      one["out_kept_by_gather"] = alone(engine_out, stream) / one["out_beside_gather"];
      one["large_out_kept_by_gather"] = kept(large_out, gather, stream);
      one["out_kept_by_engine"] = kept(engine_out, engine_in, stream);
      one["kernel_out_kept_by_gather"] = kept(kernel_out, gather, stream);
      one["read_latency"] = latency({}, stream);
      one["read_latency_by_out"] = latency({engine_out}, stream);
      one["read_latency_by_gather"] = latency({gather}, stream);
      one["read_latency_by_engine"] = latency({engine_in}, stream);
      one["read_latency_by_kernel"] = latency({kernel_out}, stream);
      one["read_latency_by_both"] = latency({gather, engine_out}, stream);
      one["launch_time"] = launch_seconds({}, stream);
      one["launch_time_by_gather"] = launch_seconds({gather}, stream);
      one["read_slowdown_by_out"] = one["read_latency_by_out"] / one["read_latency"];
      one["in_flight_kept"] =
          one["gather_kept_by_out"] * one["read_latency_by_both"] / one["read_latency_by_gather"];
      if (turn > 0) {  // the first of each warms up
        for (const auto& [metric, value] : one) {
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

  // The gather's kernel copies from device memory, in one piece without the bytes after its last
  // vector.
  void write(uint8_t* to, cudaStream_t on) const {
    constexpr int64_t kVector = sizeof(int4);
    const int64_t size = pieces.bytes() / kVector * kVector;
    const int64_t tiles = (size + kTileBytes<int4> - 1) / kTileBytes<int4>;
    const auto useful = std::min<int64_t>(blocks_for(tiles * kWarp), kMaxBlocks);
    const int blocks = pieces.blocks > 0 ? pieces.blocks : static_cast<int>(useful);
    copy_places<int4>
        <<<blocks, kBlock, 0, on>>>(first_.get(), to, source_.get(), size, tiles, 1, false);
    check(cudaGetLastError(), "copy_places");
  }

  // Device time of `work`, without the first run.
  double alone(const Work& work, cudaStream_t stream) const {
    Event start;
    Event end;
    work(stream);
    start.record(stream);
    for (int i = 0; i < kTimed; ++i) {
      work(stream);
    }
    end.record(stream);
    return end.since(start) / kTimed;
  }

  // Rate of `work` while `neighbour` runs all the time, over its rate alone.
  double kept(const Work& work, const Work& neighbour, cudaStream_t stream) const {
    return alone(work, stream) / seconds_beside(work, neighbour, stream);
  }

  // Device time of `work` while `neighbour` runs, without the first run.
  double seconds_beside(const Work& work, const Work& neighbour, cudaStream_t stream) const {
    Event start;
    Event end;
    beside({neighbour}, stream, [&] {
      work(stream);
      start.record(stream);
      for (int i = 0; i < kTimed; ++i) {
        work(stream);
      }
      end.record(stream);
    });
    return end.since(start) / kTimed;
  }

  // Seconds of one read while all neighbours run.
  double latency(const std::vector<Work>& neighbours, cudaStream_t stream) {
    beside(neighbours, stream, [&] {
      read_in_turn<<<1, 1, 0, stream>>>(words_.get(), line_, taken_.get());
      check(cudaGetLastError(), "read_in_turn");
    });
    line_ = static_cast<int64_t>(taken_[1]);  // the next walk goes on from there
    return static_cast<double>(taken_[0]) * 1e-9 / kReads;
  }

  // Host time of an empty kernel and the wait for it, while all neighbours run.
  double launch_seconds(const std::vector<Work>& neighbours, cudaStream_t stream) const {
    double seconds = 0;
    beside(neighbours, stream, [&] {
      seconds = seconds_of(
          [&] {
            do_nothing<<<1, 1, 0, stream>>>();
            check(cudaGetLastError(), "do_nothing");
          },
          stream);
    });
    return seconds;
  }

  // Calls `enqueue` while all neighbours run, and keeps them running until `stream` is idle. Throws
  // std::runtime_error if one has ended before.
  template <class Enqueue>
  void beside(const std::vector<Work>& works, cudaStream_t stream, const Enqueue& enqueue) const {
    const std::array streams{beside_.get(), also_beside_.get()};
    std::vector<int> batches;
    for (const Work& work : works) {
      batches.push_back(static_cast<int>(kBatch / alone(work, beside_.get())) + 1);
    }
    std::vector<Neighbour> neighbours;
    for (size_t i = 0; i < works.size(); ++i) {
      neighbours.emplace_back(works[i], streams[i], batches[i]);
    }
    enqueue();
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      for (Neighbour& neighbour : neighbours) {
        neighbour.refill();
      }
    }
    const bool have_run = std::all_of(neighbours.begin(), neighbours.end(),
                                      [](const Neighbour& one) { return one.is_running(); });
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (!have_run) {
      throw std::runtime_error("a neighbour ended before the work beside it");
    }
  }

  const size_t bytes_;
  const std::shared_ptr<uint8_t[]> landed_;
  const std::shared_ptr<uint32_t[]> words_;
  const std::shared_ptr<unsigned long long[]> taken_;
  const std::shared_ptr<Place[]> first_;
  const std::shared_ptr<uint8_t[]> source_;
  const std::shared_ptr<uint8_t[]> scratch_;
  const std::shared_ptr<CUstream_st> beside_ = new_stream();
  const std::shared_ptr<CUstream_st> also_beside_ = new_stream();
  int64_t line_ = 0;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  if (!pieces.to_device) {
    throw std::invalid_argument("to_device: expected true, got false");
  }
  return std::make_unique<DuplexCause>(pieces);
}
