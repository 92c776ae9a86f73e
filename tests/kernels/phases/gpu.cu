// An allocator on a GPU, where other streams and graphs use its memory:
//
//   gpu canary ITERATIONS    blocks that one stream fills and another reads, late, after their free
//   gpu graphs               replays in any order, beside memory that must not change
//
// Exits with 1 if a word was not as it must be.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "driver_source.h"
#include "pooled_allocator.h"

namespace {

constexpr int kThreads = 256, kBlocks = 8;

__global__ void fill(uint32_t* words, size_t count, uint32_t tag) {
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    words[i] = tag;
  }
}

// Adds the number of words other than `tag`, after `cycles`.
__global__ void count_others(const uint32_t* words, size_t count, uint32_t tag, int64_t cycles,
                             unsigned long long* others) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    if (__ldcg(words + i) != tag) {
      atomicAdd(others, 1ull);
    }
  }
}

Place place_of(cudaStream_t stream) { return {0, reinterpret_cast<Stream>(stream)}; }

struct Queue {
  explicit Queue(unsigned flags = cudaStreamNonBlocking) {
    check(cudaStreamCreateWithFlags(&stream, flags), "stream");
  }
  Place place() const { return place_of(stream); }
  cudaStream_t stream;
};

// An allocator over the driver, and the number of wrong words so far.
class Gpu {
 public:
  Gpu() {
    check(cudaMalloc(&others_, sizeof *others_), "counter");
    check(cudaMemset(others_, 0, sizeof *others_), "counter");
  }

  PooledAllocator& pooled() { return dynamic_cast<PooledAllocator&>(*allocator); }

  uint32_t* words(size_t count, Place place) {
    return static_cast<uint32_t*>(allocator->allocate(count * sizeof(uint32_t), place));
  }

  void expect(const uint32_t* words, size_t count, uint32_t tag, cudaStream_t stream,
              int64_t cycles = 0) {
    count_others<<<kBlocks, kThreads, 0, stream>>>(words, count, tag, cycles, others_);
    check(cudaGetLastError(), "launch");
  }

  unsigned long long wrong() {
    check(cudaDeviceSynchronize(), "kernels");
    unsigned long long found = 0;
    check(cudaMemcpy(&found, others_, sizeof found, cudaMemcpyDeviceToHost), "counter");
    return found;
  }

  DriverSource source;
  const std::unique_ptr<Allocator> allocator = make_allocator(source);

 private:
  unsigned long long* others_;
};

// Were a block handed out before its reader is through, the next fill would change what that reads.
unsigned long long canary(int iterations) {
  Gpu gpu;
  Queue writer, reader;
  cudaEvent_t filled;
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), "event");
  gpu.allocator->set_limit(0, size_t{256} << 20);
  std::mt19937 random(1);
  for (int i = 0; i < iterations; ++i) {
    // Few sizes, so that blocks come back at once where nothing holds them.
    const size_t count = size_t{1} << (10 + random() % 10);
    const uint32_t tag = 1 + uint32_t(i);
    uint32_t* words = gpu.words(count, writer.place());
    fill<<<kBlocks, kThreads, 0, writer.stream>>>(words, count, tag);
    check(cudaEventRecord(filled, writer.stream), "filled");
    check(cudaStreamWaitEvent(reader.stream, filled), "filled");
    gpu.allocator->record_stream(words, reader.place());
    gpu.expect(words, count, tag, reader.stream, 20000 + random() % 20000);
    gpu.allocator->deallocate(words, writer.place());
  }
  return gpu.wrong();
}

constexpr size_t kCount = size_t{1} << 20;  // words of each allocation beside graphs

struct Graph {
  PoolId pool;
  cudaGraphExec_t replay;
  uint32_t* result;
  uint32_t tag;
};

// A graph that fills a temporary and copies it into a result.
Graph captured(Gpu& gpu, const Queue& queue, PoolId pool, cudaStreamCaptureMode mode,
               uint32_t tag) {
  PooledAllocator& allocator = gpu.pooled();
  const Place place = queue.place();
  Graph made{pool, {}, gpu.words(kCount, place), tag};
  uint32_t* read = gpu.words(kCount, {0, 0});
  allocator.begin_capture(0, pool, [place](Stream one) { return one == place.stream; });
  check(cudaStreamBeginCapture(queue.stream, mode), "begin");
  uint32_t* temporary = gpu.words(kCount, place);
  fill<<<kBlocks, kThreads, 0, queue.stream>>>(temporary, kCount, tag);
  check(cudaMemcpyAsync(made.result, temporary, kCount * sizeof *temporary,
                        cudaMemcpyDeviceToDevice, queue.stream),
        "copy");
  allocator.deallocate(temporary, place);
  // The graph uses memory of the default stream, and that uses memory of the graph.
  allocator.record_stream(read, place);
  allocator.deallocate(read, {0, 0});
  uint32_t* used = gpu.words(kCount, place);
  allocator.record_stream(used, {0, 0});
  allocator.deallocate(used, place);
  cudaGraph_t graph;
  check(cudaStreamEndCapture(queue.stream, &graph), "end");
  allocator.end_capture(0, pool);
  check(cudaGraphInstantiate(&made.replay, graph, 0), "instantiate");
  check(cudaGraphDestroy(graph), "graph");
  return made;
}

// Wrong words, or bytes that were not returned.
unsigned long long replayed(size_t count, bool share, unsigned flags, cudaStreamCaptureMode mode) {
  Gpu gpu;
  const Queue queue(flags);
  std::vector<Graph> graphs;
  std::vector<uint32_t*> kept;
  const auto keep = [&](int more) {
    for (; more > 0; --more) {
      kept.push_back(gpu.words(kCount, queue.place()));
      fill<<<kBlocks, kThreads, 0, queue.stream>>>(kept.back(), kCount, 7);
    }
  };
  for (size_t i = 0; i < count; ++i) {
    graphs.push_back(captured(gpu, queue, {0, share ? 1 : i + 1}, mode, uint32_t(100 + i)));
    keep(2);
  }
  gpu.allocator->trim(0, 0);
  keep(4);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(graphs.begin(), graphs.end(), random);
    for (const Graph& graph : graphs) {
      check(cudaGraphLaunch(graph.replay, queue.stream), "launch");
    }
    for (const Graph& graph : graphs) {
      gpu.expect(graph.result, kCount, graph.tag, queue.stream);
      fill<<<kBlocks, kThreads, 0, queue.stream>>>(graph.result, kCount, 0);
    }
    for (const uint32_t* words : kept) {
      gpu.expect(words, kCount, 7, queue.stream);
    }
  }
  const unsigned long long wrong = gpu.wrong();
  for (const Graph& graph : graphs) {
    check(cudaGraphExecDestroy(graph.replay), "graph");
    gpu.pooled().release_pool(0, graph.pool);
    kept.push_back(graph.result);
  }
  for (uint32_t* words : kept) {
    gpu.allocator->deallocate(words, queue.place());
  }
  gpu.allocator->trim(0, 0);
  return wrong + gpu.allocator->statistics(0).reserved;
}

// The default streams of two threads share no memory, and each may free what the other uses; 1 if
// they do, or bytes that were not returned.
unsigned long long shared_by_threads() {
  Gpu gpu;
  const Place place = place_of(cudaStreamPerThread);
  uint32_t* first = gpu.words(kCount, place);
  gpu.allocator->deallocate(first, place);
  bool is_shared = true;
  std::thread([&] {
    uint32_t *second = gpu.words(kCount, place), *both = gpu.words(kCount, {0, 0});
    is_shared = second == first;
    gpu.allocator->record_stream(both, place);
    gpu.allocator->deallocate(both, {0, 0});
    gpu.allocator->deallocate(second, place);
  }).join();
  gpu.allocator->trim(0, 0);
  return is_shared + gpu.allocator->statistics(0).reserved;
}

unsigned long long graphs() {
  unsigned long long wrong = shared_by_threads();
  for (const size_t count : {2, 10}) {
    for (const bool share : {false, true}) {
      for (const unsigned flags : {cudaStreamNonBlocking, cudaStreamDefault}) {
        for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                cudaStreamCaptureModeRelaxed}) {
          wrong += replayed(count, share, flags, mode);
        }
      }
    }
  }
  return wrong;
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_canary = count > 2 && arguments[1] == std::string("canary");
  const unsigned long long wrong = is_canary ? canary(std::atoi(arguments[2])) : graphs();
  std::printf("%llu words changed\n", wrong);
  return wrong == 0 ? 0 : 1;
}
