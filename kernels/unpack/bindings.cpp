// The Python module of every variant. It checks that the arguments fit together; the workload,
// which makes all descriptors, checks those.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "../common/host_clock.h"
#include "../common/require.h"
#include "operator.h"

namespace py = pybind11;

namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;

// GPU memory that the caller owns.
struct Range {
  std::uintptr_t pointer;
  uint64_t bytes;
};

Receive receive_of(const Bytes& blocks, const std::vector<uint32_t>& blocks_of_chunks,
                   const Range& bounce, const Range& dst) {
  const auto size = static_cast<size_t>(blocks.nbytes());
  const size_t known = size / sizeof(DescriptorBlock);
  require(size % sizeof(DescriptorBlock) == 0, "blocks",
          "whole blocks of " + std::to_string(sizeof(DescriptorBlock)) + " bytes",
          std::to_string(size) + " bytes");
  const auto* block = reinterpret_cast<const DescriptorBlock*>(blocks.data());
  require(reinterpret_cast<std::uintptr_t>(block) % alignof(DescriptorBlock) == 0, "blocks",
          "memory on a 16-byte boundary", "memory that is not");
  require(bounce.pointer % 16 == 0 && bounce.bytes % 16 == 0, "bounce", "whole 16-byte vectors",
          std::to_string(bounce.bytes) + " bytes");
  Receive receive{reinterpret_cast<const uint8_t*>(bounce.pointer),
                  bounce.bytes,
                  reinterpret_cast<uint8_t*>(dst.pointer),
                  dst.bytes,
                  {},
                  0,
                  0};
  size_t used = 0;
  for (const uint32_t count : blocks_of_chunks) {
    used += count;
    require(used <= known, "blocks_of_chunks",
            "no more than the " + std::to_string(known) + " given", std::to_string(used));
    receive.chunks.push_back({block, count});
    for (const DescriptorBlock& filled : receive.chunks.back()) {
      require(filled.count >= 1 && filled.count <= kBlockDescriptors, "count",
              "1 to " + std::to_string(kBlockDescriptors), std::to_string(filled.count));
      receive.descriptors += filled.count;
      receive.bytes += filled.bytes;
    }
    block += count;
  }
  require(used == known && used > 0, "blocks_of_chunks", "all " + std::to_string(known) + " blocks",
          std::to_string(used));
  return receive;
}

class Bound {
 public:
  Bound(Bytes blocks, const std::vector<uint32_t>& blocks_of_chunks, const Range& bounce,
        const Range& dst)
      : blocks_(std::move(blocks)),
        receive_(receive_of(blocks_, blocks_of_chunks, bounce, dst)),
        path_(make_path(receive_)) {}

  void launch(cudaStream_t stream) {
    PartTimer stopped;
    path_->unpack(stream, stopped);
  }

  void get_ready() { path_->get_ready(); }

  bool must_get_ready() const { return path_->must_get_ready(); }

  bool waits() const { return path_->waits(); }

  std::map<std::string, double> parts(std::uintptr_t stream) {
    path_->get_ready();
    PartTimer timer;
    timer.start();
    path_->unpack(reinterpret_cast<cudaStream_t>(stream), timer);
    check(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    timer.lap(kWait);
    std::map<std::string, double> seconds;
    for (int part = 0; part < kParts; ++part) {
      if (timer.seconds()[part] > 0) {
        seconds[kPartNames[part]] = timer.seconds()[part];
      }
    }
    return seconds;
  }

 private:
  Bytes blocks_;
  Receive receive_;
  std::unique_ptr<Path> path_;
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("block_bytes") = sizeof(DescriptorBlock);
  py::class_<Bound> bound(m, "Bound", py::module_local());
  def_launch(bound);
  bound.def("get_ready", &Bound::get_ready, "Prepare the next launch, outside of its time.")
      .def("must_get_ready", &Bound::must_get_ready, "Whether launches need that preparation.")
      .def("waits", &Bound::waits, "Whether a launch waits for the GPU, or may.")
      .def("parts", &Bound::parts, py::arg("stream"),
           "Launch and wait; returns the host's seconds by part of the call.");
  m.def(
      "bind",
      [](Bytes blocks, const std::vector<uint32_t>& blocks_of_chunks, std::uintptr_t bounce,
         uint64_t bounce_bytes, std::uintptr_t dst, uint64_t dst_bytes) {
        // Constructed in place, because the path refers to the receive in the same object.
        return std::make_unique<Bound>(std::move(blocks), blocks_of_chunks,
                                       Range{bounce, bounce_bytes}, Range{dst, dst_bytes});
      },
      py::arg("blocks"), py::arg("blocks_of_chunks"), py::arg("bounce"), py::arg("bounce_bytes"),
      py::arg("dst"), py::arg("dst_bytes"),
      R"(Bind one receive, to unpack it repeatedly.

blocks: uint8 [blocks * block_bytes], descriptor blocks of all chunks, in host memory
blocks_of_chunks: number of blocks of each chunk
bounce, bounce_bytes: GPU memory that holds the fragments; both multiples of 16
dst, dst_bytes: GPU memory that receives them

Descriptors are not checked. ValueError names the invalid argument; RuntimeError carries CUDA's
message.)");
}
