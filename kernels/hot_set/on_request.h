// Steps whose missing rows the CPU packs on request, but for a share that the SMs read in place.
// One kernel resolves, a block per request. It requests the missing rows before it evicts others
// for them, so that the threads pack meanwhile. The next kernel fetches.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "miss_fetch.h"
#include "miss_packer.h"
#include "share_model.h"
#include "table_resolve.h"

#ifndef FETCH_BLOCKS  // a flag of trials
#define FETCH_BLOCKS 128
#endif
constexpr int kFetchBlocks = FETCH_BLOCKS;
#ifndef BLOCKS_IN_PLACE  // a flag of trials
#define BLOCKS_IN_PLACE 64
#endif
constexpr int kBlocksInPlace = BLOCKS_IN_PLACE;  // beside those that copy packed rows

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

__global__ void __launch_bounds__(kTableThreads)
    resolve_and_request(HotSet set, Residency residency, Misses misses, MissRequests requests,
                        ShareModel model, Reserved reserved) {
  __shared__ TableShared shared;
  __shared__ int64_t first;
  cudaTriggerProgrammaticLaunchCompletion();
  const int request = static_cast<int>(blockIdx.x);
  TableResolve step(set, residency, request, shared);
  step.find();
  if (threadIdx.x == 0) {
    int64_t total;
    first = reserved.take(shared.misses, total);
    if (total >= 0) {
      const auto in_place = static_cast<uint32_t>(model.rows_in_place(total));
      *misses.rows_in_place = in_place;
      *misses.end = static_cast<uint32_t>(total);
      *misses.claimed = 0;
      if (requests.rows != nullptr) {
        request_range(requests, in_place, static_cast<uint32_t>(total));
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < shared.misses; i += kTableThreads) {
    const auto row = static_cast<uint32_t>(shared.miss_pool_rows[i]);
    misses.pool_rows[first + i] = row;
    if (requests.rows != nullptr) {
      request_row(requests, first + i, row);
    }
  }
  step.evict();
  for (int i = static_cast<int>(threadIdx.x); i < shared.misses; i += kTableThreads) {
    misses.buffer_rows[first + i] =
        static_cast<uint32_t>(request * set.slots + shared.miss_slots[i]);
  }
  step.store();
}

// While there are rows of both kinds, the blocks are divided. Those in place go on until they meet
// the CPU if no row is given to either side.
template <bool kMeets>
__global__ void __launch_bounds__(kBlock) fetch(Misses misses, MissRequests requests) {
  cudaGridDependencySynchronize();
  const MissFetch<kRowBytes> fetch{misses, requests};
  const int64_t in_place = *misses.rows_in_place;
  const int64_t end = *misses.end;
  const int blocks = static_cast<int>(gridDim.x);
  const int block = static_cast<int>(blockIdx.x);
  const bool is_divided = kMeets || in_place > 0;
  const int packing = in_place == end ? 0 : is_divided ? blocks - kBlocksInPlace : blocks;
  if (block < packing) {
    fetch.copy_packed(block, packing, in_place, end);
  } else if (kMeets) {
    fetch.read_until_met(in_place, end);
  } else {
    fetch.read_in_place(block - packing, blocks - packing, 0, in_place);
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
               static_cast<int64_t>(worker_cpus(cpus, kMaxMissWorkers).size()), share_32nds),
        meets_(meets && !model_.is_within_reach()),
        lists_(on_device<uint32_t>(static_cast<size_t>(2 * max_rows_ + 3))),
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
    }
  }

  void launch(cudaStream_t stream) {
    if (packer_ == nullptr) {
      enqueue({}, stream);
    } else {
      packer_->launch(stream, [&](const MissRequests& requests) { enqueue(requests, stream); });
    }
  }

  std::function<void(const std::vector<int64_t>&)> flush() const {
    if (packer_ == nullptr) {
      return nullptr;
    }
    return [packer = packer_](const std::vector<int64_t>& rows) { packer->flush(rows); };
  }

 private:
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

  void enqueue(const MissRequests& requests, cudaStream_t stream) {
    const Misses misses = {set_.pool,
                           set_.hot,
                           lists_.get(),
                           lists_.get() + max_rows_,
                           lists_.get() + 2 * max_rows_,
                           lists_.get() + 2 * max_rows_ + 1,
                           lists_.get() + 2 * max_rows_ + 2};
    resolve_and_request<<<set_.requests, kTableThreads, 0, stream>>>(
        set_, residencies_.of(0), misses, requests, model_, Reserved{reserved_.get()});
    // The blocks of the second kernel are resident when the first one ends.
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
