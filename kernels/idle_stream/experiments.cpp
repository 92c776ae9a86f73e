// Experiments on one batched call on an idle stream: does it copy the data itself, and up to which
// size of a piece is it slow?
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "../common/memory.h"
#include "../common/moves/batch.h"

namespace {

constexpr int64_t kChanged = 64;      // pieces that the caller changes after the call
constexpr int kOccupyingCopies = 40;  // keep the copy engine busy meanwhile
constexpr int kTimes = 5;
constexpr int64_t kLowBytes = 512;
constexpr int64_t kHighBytes = 65536;
constexpr int64_t kStepBytes = 16;
constexpr int64_t kBoundPieces = 256;

void wait_for(cudaStream_t stream) {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace

class Experiments : public Batch {
 public:
  explicit Experiments(const Pieces& moved)
      : Batch(moved),
        changed_(std::min(kChanged, pieces.count)),
        changed_call_(pieces, 0, changed_) {}

  Samples samples(cudaStream_t stream) override {
    return {{"old_share", {share_of_old_pieces(stream)}}, {"bound_bytes", {bound(stream)}}};
  }

 private:
  // The copy engine is busy for another stream when the call is made, and the caller changes the
  // pieces right after it returns. Share of pieces that arrive unchanged; -1 if the engine was not
  // busy until then.
  double share_of_old_pieces(cudaStream_t stream) {
    const auto size = static_cast<size_t>(pieces.size);
    const auto span = static_cast<size_t>(pieces.bytes());
    const auto scratch = on_device<uint8_t>(span);
    std::vector<uint8_t> old(changed_ * size);
    std::vector<uint8_t> arrived(size);
    for (int64_t i = 0; i < changed_; ++i) {
      std::memcpy(old.data() + i * size, pieces.on_host(i), size);
    }
    for (int k = 0; k < kOccupyingCopies; ++k) {
      check(cudaMemcpyAsync(scratch.get(), pieces.host, span, cudaMemcpyHostToDevice, other_.get()),
            "cudaMemcpyAsync");
    }
    changed_call_.enqueue(stream);
    for (int64_t i = 0; i < changed_; ++i) {
      std::transform(pieces.on_host(i), pieces.on_host(i) + size, pieces.on_host(i),
                     [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
    }
    const bool was_busy = cudaStreamQuery(other_.get()) == cudaErrorNotReady;
    wait_for(stream);
    wait_for(other_.get());
    int64_t unchanged = 0;
    for (int64_t i = 0; i < changed_; ++i) {
      check(cudaMemcpy(arrived.data(), pieces.on_device(i), size, cudaMemcpyDeviceToHost),
            "cudaMemcpy");
      unchanged += std::memcmp(arrived.data(), old.data() + i * size, size) == 0;
      std::memcpy(pieces.on_host(i), old.data() + i * size, size);
    }
    return was_busy ? static_cast<double>(unchanged) / static_cast<double>(changed_) : -1;
  }

  // The largest size whose call takes twice as long as that of kHighBytes; 0 if there is none.
  double bound(cudaStream_t stream) const {
    const double limit = 2 * submit_seconds(kHighBytes, stream);
    // Tests sizes in steps of two, then bisects above the largest that is slow.
    int64_t slow = 0;
    for (int64_t size = kLowBytes; size < kHighBytes; size *= 2) {
      if (submit_seconds(size, stream) > limit) {
        slow = size;
      }
    }
    if (slow == 0) {
      return 0;
    }
    int64_t fast = 2 * slow;
    while (fast - slow > kStepBytes) {
      const int64_t middle = (slow + fast) / 2 / kStepBytes * kStepBytes;
      (submit_seconds(middle, stream) > limit ? slow : fast) = middle;
    }
    return static_cast<double>(slow);
  }

  // Median seconds until a call returns, for at most kBoundPieces pieces of `size` bytes that lie
  // kHighBytes apart in the memory of the case.
  double submit_seconds(int64_t size, cudaStream_t stream) const {
    const int64_t count = std::clamp<int64_t>(pieces.bytes() / kHighBytes, 1, kBoundPieces);
    std::vector<Place> places;
    for (int64_t i = 0; i < count; ++i) {
      places.push_back({i * kHighBytes, i * kHighBytes});
    }
    Pieces apart = pieces;
    apart.places = places.data();
    apart.size = size;
    BatchedCall call(apart, 0, count);
    std::array<double, kTimes> seconds{};
    for (double& each : seconds) {
      wait_for(stream);
      const auto start = std::chrono::steady_clock::now();
      call.enqueue(stream);
      each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    wait_for(stream);
    std::sort(seconds.begin(), seconds.end());
    return seconds[kTimes / 2];
  }

  const int64_t changed_;
  BatchedCall changed_call_;
  const std::shared_ptr<CUstream_st> other_ = new_stream();
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  if (!pieces.to_device) {
    throw std::invalid_argument("to_device: expected true, got false");
  }
  return std::make_unique<Experiments>(pieces);
}
