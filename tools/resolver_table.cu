// Cost of a nearly full hash table in a resolver of sparse attention. One block inserts the
// ids of a step (all 2,048, or the share that lies in host memory) into an open-addressing table in
// shared memory with linear probing. Then it looks up the 4,096 rows of the hot set, of which those
// that are no ids are found absent only at an empty place.
//   nvcc -arch=sm_90 -O3 -o resolver_table resolver_table.cu && ./resolver_table
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

constexpr int kIds = 2048, kSlots = 4096, kThreads = 1024, kEmpty = -1, kLaunches = 21;

__device__ int place_of(int32_t id, int places) {
  return static_cast<int>(__umulhi(static_cast<uint32_t>(id) * 2654435761u, places));
}

// ids[requests][kIds], of which `count` enter the table; rows[requests][kSlots]
__global__ void __launch_bounds__(kThreads)
    resolve(const int32_t* ids, int count, const int32_t* rows, int places, int* hits) {
  extern __shared__ int32_t table[];
  for (int i = threadIdx.x; i < places; i += kThreads) table[i] = kEmpty;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const int32_t id = ids[blockIdx.x * kIds + i];
    int at = place_of(id, places);
    for (int32_t old; (old = atomicCAS(&table[at], kEmpty, id)) != kEmpty && old != id;) {
      at = at + 1 == places ? 0 : at + 1;
    }
  }
  __syncthreads();
  int found = 0;
  for (int i = threadIdx.x; i < kSlots; i += kThreads) {
    const int32_t row = rows[blockIdx.x * kSlots + i];
    int at = place_of(row, places);
    while (table[at] != kEmpty && table[at] != row) at = at + 1 == places ? 0 : at + 1;
    found += table[at] == row;
  }
  atomicAdd(&hits[blockIdx.x], found);
}

int main() {
  const int tables[] = {2049, 2081, 2177, 2305, 2561, 3073, 4097, 8193};
  cudaFuncSetAttribute(resolve, cudaFuncAttributeMaxDynamicSharedMemorySize, 8193 * 4);
  std::mt19937 random(1);
  for (int requests : {1, 10, 100}) {
    std::vector<int32_t> ids, rows, context(131072);
    for (int request = 0; request < requests; ++request) {
      std::iota(context.begin(), context.end(), request * 131072);
      std::shuffle(context.begin(), context.end(), random);
      ids.insert(ids.end(), context.begin(), context.begin() + kIds);
      rows.insert(rows.end(), context.begin(), context.begin() + kSlots);  // with all ids
    }
    int32_t *device_ids, *device_rows, *hits;
    cudaMalloc(&device_ids, ids.size() * 4);
    cudaMalloc(&device_rows, rows.size() * 4);
    cudaMalloc(&hits, requests * 4);
    cudaMemcpy(device_ids, ids.data(), ids.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(device_rows, rows.data(), rows.size() * 4, cudaMemcpyHostToDevice);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int percent : {100, 95, 90, 75, 50}) {
      printf("%3d requests, %3d %% of ids in host memory:", requests, percent);
      for (int places : tables) {
        std::vector<float> times(kLaunches);
        for (float& time : times) {
          cudaEventRecord(begin);
          resolve<<<requests, kThreads, places * 4>>>(device_ids, kIds * percent / 100, device_rows,
                                                      places, hits);
          cudaEventRecord(end), cudaEventSynchronize(end);
          cudaEventElapsedTime(&time, begin, end);
        }
        std::nth_element(times.begin(), times.begin() + kLaunches / 2, times.end());
        printf("  %d places %.1f us", places, times[kLaunches / 2] * 1e3);
      }
      puts("");
    }
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
