// Resolves the steps of a trace by blocks on the CPU. Arguments: a file with the trace, int32:
// requests, topk, slots, context_rows, steps and all ids; and a file for the results, int32: for
// each step, the slots of all ids, and the rows and last uses of all slots.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "block_on_cpu.h"

#ifdef CLOCK
#include "clock_resolve.h"
using Resolve = ClockResolve;
using States = ClockStates;
#else
#include "table_resolve.h"
using States = Residencies;
struct Resolve : TableResolve {
  using Shared = TableShared;
  using TableResolve::TableResolve;
  void resolve() {
    find();
    evict();
  }
};
#endif

extern "C" {
cudaError_t cudaMalloc(void** made, size_t bytes) {
  *made = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return ""; }
}

int main(int, char** arguments) {
  int32_t shape[5];
  FILE* trace = std::fopen(arguments[1], "rb");
  FILE* results = std::fopen(arguments[2], "wb");
  if (trace == nullptr || results == nullptr || std::fread(shape, sizeof(shape), 1, trace) != 1) {
    return 1;
  }
  const auto [requests, topk, slots, context_rows, steps] = shape;
  std::vector<int32_t> ids(static_cast<size_t>(requests) * topk);
  std::vector<int32_t> out(ids.size());
  std::vector<int32_t> rows(static_cast<size_t>(requests) * slots, kFree);
  std::vector<int32_t> last_used(rows.size(), kFree);
  std::vector<int32_t> places(static_cast<size_t>(requests) * context_rows);
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<int32_t>(7 * i);
  }
  int32_t step = 0;
  HotSet set{};
  set.places = places.data();
  set.ids = ids.data();
  set.step = &step;
  set.out = out.data();
  set.rows = rows.data();
  set.last_used = last_used.data();
  set.requests = requests;
  set.topk = topk;
  set.slots = slots;
  set.context_rows = context_rows;
  const States states({set});
  const auto shared = std::make_unique<Resolve::Shared>();
  for (; step < steps; ++step) {
    if (std::fread(ids.data(), sizeof(int32_t), ids.size(), trace) != ids.size()) {
      return 1;
    }
    for (int request = 0; request < requests; ++request) {
      for (int repeat = 0; repeat < 1 + step % 2; ++repeat) {  // a repeat changes nothing
        std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof(Resolve::Shared));
        block_on_cpu::run(1024, [&] {
          Resolve block(set, states.of(0), request, *shared);
          block.resolve();
          block.store();
        });
        for (int i = 0; i < shared->misses; ++i) {
          if (shared->miss_pool_rows[i] != pool_row(set, request, shared->miss_ids[i])) {
            std::printf("step %d, miss %d: another row of the pool\n", step, i);
            return 1;
          }
        }
      }
    }
    for (const auto* values : {&out, &rows, &last_used}) {
      std::fwrite(values->data(), sizeof(int32_t), values->size(), results);
    }
  }
  return std::fclose(results);
}
