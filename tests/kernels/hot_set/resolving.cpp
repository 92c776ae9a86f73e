// Does the steps of a trace on the CPU with a variant, VARIANT. Arguments: a file with the trace,
// int32: requests, topk, slots, context_rows, steps and all ids; and a file for the results: for
// each step, the slots of all ids, the rows and last uses of all slots, int32, and the bytes of all
// slots. Row i of a request's context is row 7 * i + request of the pool, and all its bytes but the
// first 4, which have its number, are that number's lowest.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "block_on_cpu.h"

#include VARIANT

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
  const int pool_rows = 7 * context_rows + requests;
  std::vector<uint8_t> pool(static_cast<size_t>(pool_rows) * kRowBytes);
  for (int row = 0; row < pool_rows; ++row) {
    uint8_t* bytes = pool.data() + static_cast<size_t>(row) * kRowBytes;
    std::memset(bytes, row, kRowBytes);
    std::memcpy(bytes, &row, sizeof(row));
  }
  for (int request = 0; request < requests; ++request) {
    for (int row = 0; row < context_rows; ++row) {
      places[static_cast<size_t>(request) * context_rows + row] = 7 * row + request;
    }
  }
  std::vector<uint8_t> hot(rows.size() * kRowBytes, 0xA5);
  int32_t step = 0;
  HotSet set{};
  set.pool = pool.data();
  set.pool_rows = pool_rows;
  set.places = places.data();
  set.ids = ids.data();
  set.step = &step;
  set.out = out.data();
  set.hot = hot.data();
  set.rows = rows.data();
  set.last_used = last_used.data();
  set.requests = requests;
  set.topk = topk;
  set.slots = slots;
  set.context_rows = context_rows;
  const Prepared variant = prepare({set}, {});
  for (; step < steps; ++step) {
    if (std::fread(ids.data(), sizeof(int32_t), ids.size(), trace) != ids.size()) {
      return 1;
    }
    for (int repeat = 0; repeat < 1 + step % 2; ++repeat) {  // a repeat changes nothing
      std::fill(out.begin(), out.end(), -1);
      variant.launch(0, nullptr);
    }
    for (const auto* values : {&out, &rows, &last_used}) {
      std::fwrite(values->data(), sizeof(int32_t), values->size(), results);
    }
    std::fwrite(hot.data(), 1, hot.size(), results);
  }
  return std::fclose(results);
}
