// gather.h as a PyTorch extension:
//   gather = torch.utils.cpp_extension.load("gather", ["gather.cu"]).RowGather(pool, max_rows)
//   packed = gather(rows)  # pool: uint8 [n, row bytes], pinned; rows: int32 on the GPU
// and as a program that measures each way beside a contiguous copy:
//   nvcc -O3 gather.cu -o gather && ./gather [--json] [--pool-gib N] [--row-bytes N]
// The pool has 16 GiB unless N is given, but at most half of the free host memory.
#include "gather.h"

#ifdef TORCH_EXTENSION_NAME
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<RowGather>(m, "RowGather")
      .def(pybind11::init([](const at::Tensor& pool, int64_t max_rows, int threads) {
             TORCH_CHECK(pool.dim() == 2 && pool.is_contiguous() && pool.is_pinned() &&
                             pool.dtype() == at::kByte && pool.size(1) % 16 == 0,
                         "pool: expected pinned uint8 [n, multiple of 16], got ", pool.sizes());
             return new RowGather(pool.data_ptr(), pool.numel(), pool.size(1), max_rows, threads);
           }),
           pybind11::arg("pool"), pybind11::arg("max_rows"), pybind11::arg("threads") = -1,
           pybind11::keep_alive<1, 2>())
      .def("__call__", [](RowGather& self, const at::Tensor& rows) {
        TORCH_CHECK(rows.is_cuda() && rows.is_contiguous(), "rows: expected packed, on a GPU");
        const auto options = rows.options().dtype(at::kByte);
        auto packed = at::empty({rows.numel(), self.row_bytes()}, options);
        const auto stream = c10::cuda::getCurrentCUDAStream(rows.get_device());
        const cudaError_t status =
            self.gather(packed.data_ptr(), rows.data_ptr<int32_t>(), rows.numel(), stream);
        TORCH_CHECK(status == cudaSuccess, "gather: ", cudaGetErrorString(status));
        return packed;
      });
}
#endif

#ifndef TORCH_EXTENSION_NAME
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

void check(cudaError_t status, const char* what) {
  if (status) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// Half of the bytes that the system and this process's control group leave.
int64_t half_of_free_bytes() {
  int64_t kib = 0, limit = 0, used = 0;
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word && word != "MemAvailable:";) {
  }
  memory >> kib;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // stays 0 if there is none
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return std::max<int64_t>(0, limit ? std::min(kib * 1024, limit - used) : kib * 1024) / 2;
}

// Word i of the pool.
__host__ __device__ uint64_t random_word(uint64_t i) {
  i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9;
  return (i ^ i >> 27) * 0x94D049BB133111EB;
}

__global__ void fill(uint64_t* pool, int64_t words) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < words; i += threads) pool[i] = random_word(i);
}

int main(int argc, char** argv) try {
  bool json = false;
  double gib = 16, row_bytes = 656;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    double* value = word == "--pool-gib" ? &gib : word == "--row-bytes" ? &row_bytes : nullptr;
    json = json || word == "--json";
    if (value && i + 1 < argc) *value = std::atof(argv[++i]);
    const bool is_option = value || word == "--json";
    if (!is_option || gib < 0.25 || row_bytes < 128 || static_cast<int64_t>(row_bytes) % 16 != 0) {
      throw std::runtime_error("options: expected those of gather.cu's head, got '" + word + "'");
    }
  }
  const auto row = static_cast<int64_t>(row_bytes), pool_mib = static_cast<int64_t>(gib * 1024);
  const int64_t pool_rows = std::min(pool_mib << 20, half_of_free_bytes()) / row;
  const int64_t count = std::min<int64_t>({1 << 18, (256 << 20) / row, pool_rows});
  const int64_t bytes = count * row;
  char *pool, *packed;
  int32_t *rows, *on_gpu;
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "GPU");
  check(cudaHostAlloc(&pool, pool_rows * row, 0), "pinned pool");
  check(cudaHostAlloc(&rows, count * 4, 0), "row numbers");
  check(cudaMalloc(&on_gpu, count * 4), "row numbers on the GPU");
  check(cudaMalloc(&packed, bytes), "packed rows");
  fill<<<1024, 256>>>(reinterpret_cast<uint64_t*>(pool), pool_rows * row / 8);
  check(cudaDeviceSynchronize(), "fill");
  RowGather gather(pool, pool_rows * row, row, count);
  std::mt19937_64 random(7);
  std::vector<uint64_t> arrived(bytes / 8);
  // Median bytes per second of five gathers of `together` adjacent rows of the first `places`.
  const auto rate = [&](auto call, int64_t places, int64_t together) {
    std::vector<double> seconds;
    for (int run = 0; run < 6; ++run) {
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t place = random() % (places / together) * together;
        rows[i] = static_cast<int32_t>(i % together ? rows[i - 1] + 1 : place);
      }
      check(cudaMemcpyAsync(on_gpu, rows, count * 4, cudaMemcpyDefault, stream), "rows");
      check(cudaMemsetAsync(packed, 0, bytes, stream), "packed rows");
      check(cudaStreamSynchronize(stream), "rows");
      const auto begin = std::chrono::steady_clock::now();
      check(call(), "gather");
      check(cudaStreamSynchronize(stream), "gather");
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      seconds.push_back(taken.count());
      if (run > 0) continue;
      check(cudaMemcpy(arrived.data(), packed, bytes, cudaMemcpyDefault), "packed rows");
      for (int64_t i = 0; i < bytes / 8; ++i) {
        const uint64_t expected = random_word(rows[i / (row / 8)] * (row / 8) + i % (row / 8));
        if (arrived[i] != expected) throw std::runtime_error("gather: wrong bytes arrived");
      }
    }
    std::sort(seconds.begin() + 1, seconds.end());
    return bytes / seconds[3];
  };
  const auto copy = [&] { return cudaMemcpyAsync(packed, pool, bytes, cudaMemcpyDefault, stream); };
  const auto read = [&] { return gather.read(packed, on_gpu, count, stream); };
  const auto pack = [&] { return gather.pack(packed, on_gpu, count, stream); };
  const auto chosen = [&] { return gather.gather(packed, on_gpu, count, stream); };
  std::vector<std::pair<const char*, double>> rates{{"link", rate(copy, count, count)}};
  rates.emplace_back("read_small_pool", rate(read, std::min(pool_rows, (188 << 20) / row), 1));
  rates.emplace_back("read", rate(read, pool_rows, 1));
  rates.emplace_back("read_four_adjacent", rate(read, pool_rows, 4));
  if (gather.threads() > 0) rates.emplace_back("pack", rate(pack, pool_rows, 1));
  rates.emplace_back("chosen", rate(chosen, pool_rows, 1));
  std::printf(json ? "{\"pool_bytes\": %.0f, \"row_bytes\": %.0f, \"threads\": %d"
                   : "pool of %.0f bytes, rows of %.0f, %d threads",
              double(pool_rows * row), row_bytes, gather.threads());
  for (const auto& [name, bytes_per_s] : rates) {
    std::printf(json ? ", \"%s\": %.4g" : "\n%-20s %6.1f GB/s", name,
                bytes_per_s / (json ? 1 : 1e9));
  }
  std::printf(json ? "}\n" : "\n");
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
#endif
