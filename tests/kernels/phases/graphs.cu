// An allocator under CUDA graphs and default streams of threads, on the real driver:
// allocator_graphs
//
// Ends with 0 where every replay gives what was captured and touches nothing else, else with 1 and
// what went wrong.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>

#include "driver_source.h"
#include "pooled_allocator.h"

namespace {

constexpr size_t kWords = size_t{1} << 20;
constexpr size_t kBytes = kWords * sizeof(uint32_t);
constexpr int kBlocks = 64, kThreads = 256;

__global__ void fill(uint32_t* words, uint32_t tag) {
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < kWords; i += kBlocks * kThreads) {
    words[i] = tag;
  }
}

__global__ void copy(uint32_t* to, const uint32_t* from) {
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < kWords; i += kBlocks * kThreads) {
    to[i] = from[i];
  }
}

__global__ void count_others(const uint32_t* words, uint32_t tag, unsigned long long* others) {
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < kWords; i += kBlocks * kThreads) {
    if (words[i] != tag) {
      atomicAdd(others, 1ull);
    }
  }
}

struct Graph {
  PoolId pool;
  cudaGraphExec_t replay;
  uint32_t* result;
  uint32_t tag;
};

class Bench {
 public:
  explicit Bench(unsigned flags) {
    check(cudaStreamCreateWithFlags(&stream_, flags), "stream");
    check(cudaMalloc(&others_, sizeof *others_), "counter");
    check(cudaMemset(others_, 0, sizeof *others_), "counter");
  }

  // A graph that fills a temporary and copies it into a result.
  void capture(PoolId pool, cudaStreamCaptureMode mode) {
    const auto tag = uint32_t(100 + graphs_.size());
    auto* result = words(place());
    uint32_t* read = words({0, 0});
    cudaGraph_t graph;
    allocator().begin_capture(0, pool,
                              [captured = place().stream](Stream one) { return one == captured; });
    check(cudaStreamBeginCapture(stream_, mode), "begin");
    uint32_t* temporary = words(place());
    fill<<<kBlocks, kThreads, 0, stream_>>>(temporary, tag);
    copy<<<kBlocks, kThreads, 0, stream_>>>(result, temporary);
    allocator().deallocate(temporary, place());
    // Memory of the default stream that the graph has to do with, and the other way round.
    allocator().record_stream(read, place());
    allocator().deallocate(read, {0, 0});
    uint32_t* used = words(place());
    allocator().record_stream(used, {0, 0});
    allocator().deallocate(used, place());
    check(cudaStreamEndCapture(stream_, &graph), "end");
    allocator().end_capture(0, pool);
    cudaGraphExec_t replay;
    check(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    check(cudaGraphDestroy(graph), "graph");
    graphs_.push_back({pool, replay, result, tag});
  }

  // Everything else that is allocated must stay as it is.
  void keep(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      kept_.push_back(words(place()));
      fill<<<kBlocks, kThreads, 0, stream_>>>(kept_.back(), 7);
    }
  }

  void replay_in_any_order(std::mt19937& random) {
    std::shuffle(graphs_.begin(), graphs_.end(), random);
    for (const Graph& graph : graphs_) {
      check(cudaGraphLaunch(graph.replay, stream_), "launch");
    }
    for (const Graph& graph : graphs_) {
      count_others<<<kBlocks, kThreads, 0, stream_>>>(graph.result, graph.tag, others_);
      fill<<<kBlocks, kThreads, 0, stream_>>>(graph.result, 0);
    }
    for (uint32_t* words : kept_) {
      count_others<<<kBlocks, kThreads, 0, stream_>>>(words, 7, others_);
    }
  }

  unsigned long long finish() {
    check(cudaStreamSynchronize(stream_), "replays");
    unsigned long long found = 0;
    check(cudaMemcpy(&found, others_, sizeof found, cudaMemcpyDeviceToHost), "counter");
    for (const Graph& graph : graphs_) {
      check(cudaGraphExecDestroy(graph.replay), "graph");
      allocator().release_pool(0, graph.pool);
      allocator().deallocate(graph.result, place());
    }
    for (uint32_t* words : kept_) {
      allocator().deallocate(words, place());
    }
    allocator().trim(0, 0);
    return found + allocator().statistics(0).reserved;
  }

  PooledAllocator& allocator() { return dynamic_cast<PooledAllocator&>(*allocator_); }

 private:
  Place place() const { return {0, reinterpret_cast<Stream>(stream_)}; }
  uint32_t* words(Place place) {
    return static_cast<uint32_t*>(allocator_->allocate(kBytes, place));
  }

  DriverSource source_;
  std::unique_ptr<Allocator> allocator_ = make_allocator(source_);
  cudaStream_t stream_;
  unsigned long long* others_;
  std::vector<Graph> graphs_;
  std::vector<uint32_t*> kept_;
};

// Words that were not as they must be, or bytes that were not given back.
unsigned long long replayed(size_t graphs, bool share, unsigned flags, cudaStreamCaptureMode mode) {
  Bench bench(flags);
  for (size_t i = 0; i < graphs; ++i) {
    bench.capture({0, share ? 1 : i + 1}, mode);
    bench.keep(2);
  }
  bench.allocator().trim(0, 0);
  bench.keep(4);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    bench.replay_in_any_order(random);
  }
  return bench.finish();
}

// The default streams of two threads share no memory, and each may free what the other uses.
bool threads_are_apart() {
  Bench bench(cudaStreamNonBlocking);
  const Place place{0, reinterpret_cast<Stream>(cudaStreamPerThread)};
  void* first = bench.allocator().allocate(kBytes, place);
  bench.allocator().deallocate(first, place);
  bool apart = false;
  std::thread([&] {
    void* second = bench.allocator().allocate(kBytes, place);
    apart = second != first;
    void* shared = bench.allocator().allocate(kBytes, {0, 0});
    bench.allocator().record_stream(shared, place);
    bench.allocator().deallocate(shared, {0, 0});
    bench.allocator().deallocate(second, place);
  }).join();
  bench.allocator().trim(0, 0);
  return apart && bench.allocator().statistics(0).reserved == 0;
}

}  // namespace

int main() {
  int faults = 0;
  for (const size_t graphs : {2, 10}) {
    for (const bool share : {false, true}) {
      for (const unsigned flags : {cudaStreamNonBlocking, cudaStreamDefault}) {
        for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                cudaStreamCaptureModeRelaxed}) {
          const unsigned long long found = replayed(graphs, share, flags, mode);
          std::printf("%zu graphs, %s, stream of kind %u, mode %d: %llu wrong\n", graphs,
                      share ? "one pool" : "separate pools", flags, int(mode), found);
          faults += found != 0;
        }
      }
    }
  }
  const bool apart = threads_are_apart();
  std::printf("default streams of threads: %s\n", apart ? "apart" : "one");
  return faults == 0 && apart ? 0 : 1;
}
