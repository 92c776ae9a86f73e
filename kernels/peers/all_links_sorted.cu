// Each GPU puts its share in the order of the pool first, as far as that helps its translations.
#include <cub/device/device_radix_sort.cuh>
#include <memory>

#include "gather.h"

namespace {

// Host memory whose translations a GPU holds, and what one of them covers.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

template <class T>
std::shared_ptr<T[]> on_device(size_t count) {
  void* made = nullptr;
  check(cudaMalloc(&made, count * sizeof(T)), "scratch");
  return {static_cast<T*>(made), [](T* memory) { cudaFree(memory); }};
}

class Sorter {
 public:
  // By the bits that put rows into ranges of the pool of half of what the GPU holds, for the rows
  // in flight may lie in two ranges at once.
  explicit Sorter(const Share& share) : rows_(share.rows) {
    while ((share.pool_rows - 1) >> high_ != 0) {
      ++high_;
    }
    while (low_ < high_ && (int64_t{share.row_bytes} << (low_ + 1)) <= kHeldBytes / 2) {
      ++low_;
    }
    check(sort(nullptr, nullptr, nullptr), "sort");
    sorted_ = on_device<int2>(static_cast<size_t>(rows_));
    scratch_ = on_device<uint8_t>(scratch_bytes_);
  }

  // The pairs in order, in memory of the sorter.
  const int2* sorted(const int2* pairs, cudaStream_t stream) {
    check(sort(scratch_.get(), pairs, stream), "sort");
    return sorted_.get();
  }

 private:
  // Without scratch, only says how much is needed. The source row is the lower half of a pair read
  // as one number.
  cudaError_t sort(uint8_t* scratch, const int2* pairs, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(
        scratch, scratch_bytes_, reinterpret_cast<const uint64_t*>(pairs),
        reinterpret_cast<uint64_t*>(sorted_.get()), rows_, low_, high_, stream);
  }

  int64_t rows_;
  int low_ = 0;
  int high_ = 0;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<int2[]> sorted_;
  std::shared_ptr<uint8_t[]> scratch_;
};

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share) {
  // Where all pages that the rows can touch are held anyway, order cannot matter.
  if (std::min(share.rows * kPageBytes, share.pool_rows * share.row_bytes) <= kHeldBytes) {
    return gather;
  }
  const auto sorter = std::make_shared<Sorter>(share);
  return [sorter](Share of, cudaStream_t stream) {
    of.pairs = sorter->sorted(of.pairs, stream);
    gather(of, stream);
  };
}
