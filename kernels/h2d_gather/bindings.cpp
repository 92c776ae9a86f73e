// Python bindings, the same for every variant: bind() checks once, launch() only enqueues.
#include <string>
#include <utility>
#include <vector>

#include "../common/arrays.h"
#include "../common/gather_arguments.h"
#include "../common/host_clock.h"
#include "operator.h"

namespace py = pybind11;

namespace {

void require_pinned(const void* pointer) {
  const cudaMemoryType type = attributes_of(pointer, "src").type;
  require(type == cudaMemoryTypeHost || type == cudaMemoryTypeManaged, "src", "pinned host memory",
          "pageable memory");
}

// A checked gather that keeps its arrays alive. For one Python thread at a time; launches do not
// wait for the GPU.
class Bound {
 public:
  Bound(py::array src, py::object dst, py::object pairs, py::object sm_launches)
      : keep_alive_(py::make_tuple(src, dst, pairs, sm_launches)) {
    const Array source =
        host_array<uint8_t>(src, "src", "uint8", {"slots", kSlotBytes}, kVectorAlignment);
    const Array destination =
        device_array(dst, "dst", "|u1", {"slots", kRowBytes}, kVectorAlignment);
    const Array pair = device_array(pairs, "pairs", "<i4", {"batch", "topk", 2}, sizeof(int2));
    Array counts{};
    if (!sm_launches.is_none()) {
      counts = device_array(sm_launches, "sm_launches", "<u4", {"SMs"}, sizeof(uint32_t));
    }
    require_pinned(source.as<void>());
    if (!sm_launches.is_none()) {
      require_count_per_sm(counts);
    }
    gather_ = {source.as<const uint8_t>(), destination.as<uint8_t>(), pair.as<const int2>(),
               pair.shape[0] * pair.shape[1], counts.as<uint32_t>()};
    checked_pairs(gather_.pairs, static_cast<size_t>(gather_.rows), source.shape[0],
                  destination.shape[0]);
  }

  void launch(cudaStream_t stream) const {
    ::launch(gather_, stream);
    require_success(cudaGetLastError(), "launch");
  }

 private:
  py::tuple keep_alive_;
  Gather gather_{};
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("row_bytes") = kRowBytes;
  py::class_<Bound> bound(m, "Bound", py::module_local());
  def_launch(bound);
  m.def(
      "bind",
      [](py::array src, py::object dst, py::object pairs, py::object sm_launches) {
        return Bound(std::move(src), std::move(dst), std::move(pairs), std::move(sm_launches));
      },
      py::arg("src"), py::arg("dst"), py::arg("pairs"), py::arg("sm_launches") = py::none(),
      R"(Check one gather and prepare it for launches.

src: uint8 [cpu_slots, slot_bytes], pinned host memory (a numpy array)
dst: uint8 [gpu_slots, token_bytes], GPU memory (__cuda_array_interface__)
pairs: int32 [batch, topk, 2], GPU memory: (source row, destination row)
sm_launches: uint32 [SMs], GPU memory, or None: counts the blocks that started on each SM

ValueError names the wrong argument; RuntimeError carries CUDA's own message.)");
}
