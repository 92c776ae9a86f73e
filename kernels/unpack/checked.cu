// As s4_batched, but the device checks all descriptors before it uses any of them.
#include "batch.h"
#include "kernel.h"

namespace {

enum Fault : uint32_t { kEmpty = 1, kSource, kDestination, kOverlap };
constexpr const char* kFaultNames[] = {"", "no bytes", "beyond the bounce buffer",
                                       "beyond the destination", "overlaps another"};
constexpr uint64_t kNoFault = ~uint64_t{0};

struct Limits {
  uint64_t bounce_bytes;
  uint64_t dst_bytes;
};

// The fault of a descriptor by itself, or 0.
__device__ uint32_t fault_of(const Descriptor& fragment, const Limits& limits) {
  if (fragment.len == 0) {
    return kEmpty;
  }
  if (uint64_t{fragment.src_off} + fragment.len > limits.bounce_bytes) {
    return kSource;
  }
  if (fragment.len > limits.dst_bytes || fragment.dst_off > limits.dst_bytes - fragment.len) {
    return kDestination;
  }
  return 0;
}

__device__ bool overlap(const Descriptor& one, const Descriptor& other) {
  return one.dst_off < other.dst_off + other.len && other.dst_off < one.dst_off + one.len;
}

// A team checks one descriptor, by itself and for an overlap with each preceding one. `first`
// becomes the first faulty index, shifted by 8 bits, and its fault; `bytes` the sum of all lengths.
__global__ void __launch_bounds__(kBlock)
    find_faults(Batch batch, Limits limits, unsigned long long* first, unsigned long long* bytes) {
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const uint32_t index = static_cast<uint32_t>(thread >> batch.team_log2);
  if (index >= batch.count) {
    return;
  }
  const uint32_t team = 1U << batch.team_log2;
  const uint32_t lane = static_cast<uint32_t>(thread) & (team - 1);
  const Descriptor fragment = batch.descriptors[index];
  uint32_t fault = 0;
  if (lane == 0) {
    atomicAdd(bytes, fragment.len);
    fault = fault_of(fragment, limits);
  }
  for (uint32_t i = lane; i < index && fault == 0; i += team) {
    fault = overlap(fragment, batch.descriptors[i]) ? kOverlap : 0;
  }
  if (fault != 0) {
    atomicMin(first, static_cast<unsigned long long>(index) << 8 | fault);
  }
}

class Checked : public Path {
 public:
  explicit Checked(const Receive& receive)
      : receive_(receive), batch_(receive), found_(on_device<unsigned long long>(2)) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, PartTimer& timer) override {
    batch_.send(stream, timer);
    throw_on_fault(stream);
    timer.lap(kWait);
    enqueue<WidestAccess>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
    timer.lap(kLaunch);
  }

 private:
  void throw_on_fault(cudaStream_t stream) {
    const uint32_t count = receive_.descriptors;
    uint64_t found[2] = {kNoFault, 0};
    check(cudaMemcpyAsync(found_.get(), found, sizeof(found), cudaMemcpyHostToDevice, stream),
          "found");
    const Batch batch{receive_.bounce, receive_.dst, batch_.on_gpu(), count, kMinTeamLog2};
    find_faults<<<blocks_for(count, batch.team_log2), kBlock, 0, stream>>>(
        batch, {receive_.bounce_bytes, receive_.dst_bytes}, found_.get(), found_.get() + 1);
    check(cudaGetLastError(), "kernel launch");
    check(cudaMemcpyAsync(found, found_.get(), sizeof(found), cudaMemcpyDeviceToHost, stream),
          "found");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (found[0] != kNoFault) {
      throw std::runtime_error("descriptor " + std::to_string(found[0] >> 8) + ": " +
                               kFaultNames[found[0] & 0xff]);
    }
    if (found[1] != receive_.bytes) {
      throw std::runtime_error("bytes: expected the sum of all lengths, " +
                               std::to_string(found[1]) + ", got " +
                               std::to_string(receive_.bytes));
    }
  }

  const Receive& receive_;
  DescriptorBatch batch_;
  std::shared_ptr<unsigned long long[]> found_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Checked>(receive);
}
