// Steps whose missing rows the CPU packs on request, but for a share that the SMs read in place.
// One kernel resolves, a block per request. It requests the missing rows before it evicts others
// for them, so that the threads pack meanwhile. The next kernel fetches.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "miss_fetch.h"
#include "miss_packer.h"
#include "share_model.h"
#include "table_resolve.h"

constexpr int kFetchBlocks = 128;
constexpr int kBlocksInPlace = 64;  // beside those that copy packed rows

// Numbers the misses of all requests: blocks that have reserved in the upper half, reserved numbers
// in the lower one.
struct Reserved {
  unsigned long long* word;

  // The first of `count` numbers for a block. The last block of the grid gets their `total`; for
  // the others it is negative.
  __device__ int64_t take(int count, int64_t& total) const {
    if (gridDim.x == 1) {
      total = count;
      return 0;
    }
    const unsigned long long added = 1ULL << 32 | static_cast<unsigned>(count);
    const unsigned long long before = atomicAdd(word, added);
    const auto first = static_cast<int64_t>(before & 0xFFFFFFFFU);
    total = -1;
    if (before >> 32 == gridDim.x - 1) {
      *word = 0;  // for the next launch
      total = first + count;
    }
    return first;
  }
};

// A block resolves a request. If it `fetches`, each of its warps then reads a miss at a time in
// place; otherwise another kernel fetches.
__global__ void __launch_bounds__(kTableThreads)
    resolve_and_request(HotSet set, Residency residency, Misses misses, MissRequests requests,
                        ShareModel model, Reserved reserved, bool fetches) {
  __shared__ TableShared shared;
  __shared__ int64_t first;
  cudaTriggerProgrammaticLaunchCompletion();
  const int request = static_cast<int>(blockIdx.x);
  TableResolve step(set, residency, request, shared);
  step.find();
  if (threadIdx.x == 0 && !fetches) {
    int64_t total;
    first = reserved.take(shared.misses, total);
    if (total >= 0) {
      const auto in_place = static_cast<uint32_t>(model.rows_in_place(total));
      set_range(misses, requests, in_place, static_cast<uint32_t>(total));
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < shared.misses && !fetches; i += kTableThreads) {
    const auto row = static_cast<uint32_t>(shared.miss_pool_rows[i]);
    misses.pool_rows[first + i] = row;
    if (requests.rows != nullptr) {
      request_row(requests, first + i, row);
    }
  }
  step.evict();
  for (int i = static_cast<int>(threadIdx.x); i < shared.misses && !fetches; i += kTableThreads) {
    misses.buffer_rows[first + i] =
        static_cast<uint32_t>(request * set.slots + shared.miss_slots[i]);
  }
  step.store();
  for (int i = static_cast<int>(threadIdx.x) / kWarp; i < shared.misses && fetches;
       i += kTableThreads / kWarp) {
    copy_row<Streaming, kRowVectors>(slot_vectors(set, request, shared.miss_slots[i]),
                                     pool_vectors(set, shared.miss_pool_rows[i]));
  }
}

// Requests rows that are listed in device memory.
__global__ void request_listed(Misses misses, MissRequests requests, uint32_t in_place,
                               uint32_t end) {
  for (uint32_t row = threadIdx.x; row < end; row += blockDim.x) {
    request_row(requests, row, misses.pool_rows[row]);
  }
  if (threadIdx.x == 0) {
    set_range(misses, requests, in_place, end);
  }
}

// While there are rows of both kinds, the blocks are divided. If no row is given to either side, as
// with kMeets, those in place go on until they meet the CPU.
template <bool kMeets>
__global__ void __launch_bounds__(kBlock) fetch(Misses misses, MissRequests requests) {
  cudaGridDependencySynchronize();
  const MissFetch<kRowBytes> fetch{misses, requests};
  const int64_t in_place = *misses.rows_in_place;
  const int64_t end = *misses.end;
  const int blocks = static_cast<int>(gridDim.x);
  const int block = static_cast<int>(blockIdx.x);
  // Each warp has a row in flight when both sides meet.
  constexpr int64_t kRowsOfBlock = 128;
  const int beside = kMeets ? static_cast<int>(min(end / kRowsOfBlock + 1, int64_t{kBlocksInPlace}))
                            : kBlocksInPlace;
  const bool is_divided = kMeets || in_place > 0;
  const int packing = in_place == end ? 0 : is_divided ? blocks - beside : blocks;
  if (block < packing) {
    fetch.copy_packed(block, packing, in_place, end);
  } else if (!kMeets) {
    fetch.read_in_place(block - packing, blocks - packing, 0, in_place);
  } else if (block > packing || threadIdx.x >= kWarp) {
    fetch.read_until_met(in_place, end);
  } else if (threadIdx.x == 0) {
    fetch.watch_cpu(in_place, end);
  }
}

class OnRequest {
 public:
  // Throws std::invalid_argument for several layers: a graph cannot start threads.
  OnRequest(const std::vector<HotSet>& layers, const std::vector<int>& cpus, int share_32nds,
            bool meets)
      : set_(layers.front()),
        max_rows_(int64_t{set_.requests} * set_.topk),
        residencies_(layers),
        model_(set_.pool_rows * kRowBytes, kRowBytes,
               kFastThreadRowS * kRowBytes / 656 /
                   static_cast<float>(worker_cpus(cpus, kMaxMissWorkers).size()),
               kHeadStartS, share_32nds),
        meets_(meets && !model_.is_within_reach()),
        lists_(on_device<uint32_t>(static_cast<size_t>(2 * max_rows_ + 4))),
        reserved_(on_device<unsigned long long>(1)) {
    if (layers.size() != 1) {
      throw std::invalid_argument("layers: expected 1, because a graph cannot start threads, got " +
                                  std::to_string(layers.size()));
    }
    check(cudaMemset(reserved_.get(), 0, sizeof(unsigned long long)), "counter");
    if (meets_) {
      model_.fixed_32nds = 0;  // no row is given to the SMs
    }
    if (packs()) {
      packer_ = std::make_shared<MissPacker<kRowBytes>>(set_.pool, max_rows_, cpus);
      if (model_.fixed_32nds == kChosen && max_rows_ >= kMinMeasuredRows) {
        measure_cpu();
      }
    }
  }

  void launch(cudaStream_t stream) {
    if (packer_ == nullptr) {
      const bool fetches = set_.requests >= kMinBlocksThatFetch;
      resolve({}, fetches, stream);
      if (!fetches) {
        fetch_misses(misses(set_.hot), {}, stream);
      }
      return;
    }
    packer_->launch(
        stream, [&](const MissRequests& requests) { resolve(requests, false, stream); },
        [&](const MissRequests& requests) { fetch_misses(misses(set_.hot), requests, stream); });
  }

  std::function<void(const std::vector<int64_t>&)> flush() const {
    if (packer_ == nullptr) {
      return nullptr;
    }
    return [packer = packer_](const std::vector<int64_t>& rows) { packer->flush(rows); };
  }

 private:
  // From this number of requests on, a warp per miss in their blocks keeps the link busy.
  static constexpr int kMinBlocksThatFetch = 48;
  // Where the CPU is not measured: a fast core's time to pack a row of 656 bytes, and the head
  // start of the reads in place.
  static constexpr float kFastThreadRowS = 180e-9F;
  static constexpr float kHeadStartS = 8e-6F;
  static constexpr int64_t kMinMeasuredRows = 1024;
  static constexpr int64_t kMaxMeasuredRows = 4096;

  // Whether any number of misses has a share for the CPU.
  bool packs() const {
    for (int64_t rows = 1; rows < 2 * max_rows_; rows *= 2) {
      const int64_t count = std::min(rows, max_rows_);
      if (model_.rows_in_place(count) < count) {
        return true;
      }
    }
    return false;
  }

  // The lists of a launch, whose rows go to `buffer`.
  Misses misses(uint8_t* buffer) const {
    uint32_t* const counts = lists_.get() + 2 * max_rows_;
    return {set_.pool, buffer,     lists_.get(), lists_.get() + max_rows_,
            counts,    counts + 1, counts + 2,   counts + 3};
  }

  void resolve(const MissRequests& requests, bool fetches, cudaStream_t stream) {
    resolve_and_request<<<set_.requests, kTableThreads, 0, stream>>>(
        set_, residencies_.of(0), misses(set_.hot), requests, model_, Reserved{reserved_.get()},
        fetches);
  }

  // The blocks of this kernel are resident when the previous one ends.
  void fetch_misses(const Misses& misses, const MissRequests& requests, cudaStream_t stream) const {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = kFetchBlocks;
    config.blockDim = kBlock;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, meets_ ? fetch<true> : fetch<false>, misses, requests),
          "fetch");
  }

  // Measures the time of a packed row, and the head start of the reads in place, by fetching rows
  // from anywhere in the pool. Hosts differ by more than twice.
  void measure_cpu() {
    constexpr int kTrials = 9;
    const int64_t many = std::min(max_rows_, kMaxMeasuredRows);
    const int64_t few = many / 4;
    const auto buffer = on_device<uint8_t>(static_cast<size_t>(many * kRowBytes));
    const auto stream = new_stream();
    std::mt19937 random;
    std::vector<double> packed_many, packed_few, in_place_few;
    for (int trial = 0; trial <= kTrials; ++trial) {  // the first one only warms up
      const double times[] = {trial_seconds(many, 0, buffer.get(), stream.get(), random),
                              trial_seconds(few, 0, buffer.get(), stream.get(), random),
                              trial_seconds(few, few, buffer.get(), stream.get(), random)};
      if (trial > 0) {
        packed_many.push_back(times[0]);
        packed_few.push_back(times[1]);
        in_place_few.push_back(times[2]);
      }
    }
    const double few_packed_s = median(packed_few);
    const double row_s =
        std::max((median(packed_many) - few_packed_s) / static_cast<double>(many - few), 1e-10);
    const double late_s = few_packed_s - row_s * static_cast<double>(few);
    const auto count = static_cast<float>(few);
    const double early_s = median(in_place_few) - model_.row_in_place_s(count) * count;
    model_.packed_row_s = static_cast<float>(row_s);
    model_.head_start_s = static_cast<float>(std::max(late_s - early_s, 0.0));
  }

  // Seconds to fetch `rows` random rows to `buffer`, the first `in_place` of them in place.
  double trial_seconds(int64_t rows, int64_t in_place, uint8_t* buffer, cudaStream_t stream,
                       std::mt19937& random) {
    std::vector<uint32_t> lists(static_cast<size_t>(max_rows_ + rows));
    for (int64_t i = 0; i < rows; ++i) {
      lists[static_cast<size_t>(i)] = random() % static_cast<uint32_t>(set_.pool_rows);
      lists[static_cast<size_t>(max_rows_ + i)] = static_cast<uint32_t>(i);
    }
    check(cudaMemcpy(lists_.get(), lists.data(), lists.size() * sizeof(uint32_t),
                     cudaMemcpyHostToDevice),
          "rows of a trial");
    const Misses listed = misses(buffer);
    const auto begin = std::chrono::steady_clock::now();
    packer_->launch(
        stream,
        [&](const MissRequests& requests) {
          request_listed<<<1, kTableThreads, 0, stream>>>(
              listed, requests, static_cast<uint32_t>(in_place), static_cast<uint32_t>(rows));
        },
        [&](const MissRequests& requests) { fetch_misses(listed, requests, stream); });
    check(cudaStreamSynchronize(stream), "trial");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  static double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  HotSet set_;
  int64_t max_rows_;
  Residencies residencies_;
  ShareModel model_;
  bool meets_;
  std::shared_ptr<uint32_t[]> lists_;
  std::shared_ptr<unsigned long long[]> reserved_;
  std::shared_ptr<MissPacker<kRowBytes>> packer_;  // null if the SMs read all rows
};

inline Prepared prepare_on_request(const std::vector<HotSet>& layers, const std::vector<int>& cpus,
                                   int share_32nds, bool meets = false) {
  const auto step = std::make_shared<OnRequest>(layers, cpus, share_32nds, meets);
  Prepared made;
  made.launch = [step](int, cudaStream_t stream) { step->launch(stream); };
  made.flush = step->flush();
  return made;
}
