// The CPU's cores copy consecutive rows within host memory, while all links are idle: what host
// memory carries. It is read once and written once, past the caches.
#include <atomic>

#include "../common/packed_rows.h"
#include "../common/workers.h"
#include "operation.h"

const Plan kPlan = {"host", "first", "host", "copy", "none"};

namespace {

constexpr int64_t kPieceRows = 256;  // copied by a thread at a time

class Copier {
 public:
  explicit Copier(const std::vector<int>& cpus)
      : cpus_(worker_cpus(cpus, cpus.size())), workers_(cpus_) {}

  // Copies the rows after all work of `stream`. Returns when they have arrived.
  void copy(const Share& share, cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "work before the copy");
    const OffCpus off_worker_cpus(cpus_);
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, share] { copy_pieces(share); });
    workers_.finish();
  }

 private:
  // Copies pieces until none is left.
  void copy_pieces(const Share& share) {
    const uint8_t* const from = source_bytes(share, share.source);
    uint8_t* const to = destination_bytes(share, share.destination);
    for (int64_t first; (first = next_.fetch_add(kPieceRows)) < share.rows;) {
      const int64_t end = std::min(first + kPieceRows, share.rows);
      pack_rows<kMaxRowBytes>(to, first, end, share.row_bytes,
                              [&](int64_t row) { return from + row * share.row_bytes; });
    }
  }

  std::atomic<int64_t> next_{0};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};

}  // namespace

Move prepare(const Share&, const Resources& resources) {
  const auto copier = std::make_shared<Copier>(resources.cpus);
  return [copier](const Share& of, cudaStream_t stream) { copier->copy(of, stream); };
}
