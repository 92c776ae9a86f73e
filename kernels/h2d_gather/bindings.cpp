// Python's way in, the same for every variant: bind() checks once, launch() only enqueues.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "operator.h"

namespace py = pybind11;

namespace {

void require(bool holds, const std::string& field, const std::string& expected,
             const std::string& got) {
  if (!holds) {
    throw py::value_error(field + ": expected " + expected + ", got " + got);
  }
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

std::string text(const py::handle& object) { return py::str(object); }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string extents;
  for (const int64_t extent : shape) {
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "(" + extents + ")";
}

struct Array {
  std::uintptr_t pointer;
  std::vector<int64_t> shape;
};

// A contiguous array another library keeps in GPU memory, by its __cuda_array_interface__.
Array device_array(const py::object& object, const std::string& field, const std::string& dtype) {
  require(py::hasattr(object, "__cuda_array_interface__"), field, "an array in GPU memory",
          text(py::type::of(object)));
  const py::dict interface = object.attr("__cuda_array_interface__");
  const std::string got = text(interface["typestr"]);
  require(got == dtype, field, "elements of type " + dtype, got);
  const py::object strides = interface.attr("get")("strides");
  require(strides.is_none(), field, "a contiguous array", "strides " + text(strides));
  return {interface["data"].cast<py::tuple>()[0].cast<std::uintptr_t>(),
          interface["shape"].cast<std::vector<int64_t>>()};
}

void require_rows(const std::vector<int64_t>& shape, int bytes, const std::string& field) {
  require(shape.size() == 2 && shape[1] == bytes, field,
          "shape (slots, " + std::to_string(bytes) + ")", shape_text(shape));
}

void require_mapped(const void* pointer) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, pointer), "src");
  require(attributes.type == cudaMemoryTypeHost || attributes.type == cudaMemoryTypeManaged, "src",
          "pinned host memory", "pageable memory");
}

void require_inside(int row, int64_t slots, size_t i, const char* which) {
  if (row < 0 || row >= slots) {
    require(false, "pairs[" + std::to_string(i) + "]",
            std::string("a ") + which + " row in [0, " + std::to_string(slots) + ")",
            std::to_string(row));
  }
}

// Reads the pairs back once: a row outside its pool would be a fault in the middle of a kernel.
void require_pairs_inside(const Gather& gather, int64_t src_slots, int64_t dst_slots) {
  std::vector<int2> pairs(static_cast<size_t>(gather.rows));
  check(cudaMemcpy(pairs.data(), gather.pairs, pairs.size() * sizeof(int2), cudaMemcpyDeviceToHost),
        "pairs");
  for (size_t i = 0; i < pairs.size(); ++i) {
    require_inside(pairs[i].x, src_slots, i, "source");
    require_inside(pairs[i].y, dst_slots, i, "destination");
  }
}

// A gather that was checked, and the arrays it points to, which it keeps alive. One Python thread
// at a time; launches do not wait for the GPU.
class Bound {
 public:
  Bound(py::array src, py::object dst, py::object pairs, py::object sm_launches)
      : keep_alive_(py::make_tuple(src, dst, pairs, sm_launches)) {
    require(py::isinstance<py::array_t<uint8_t>>(src), "src", "elements of type uint8",
            text(src.dtype()));
    const std::vector<int64_t> src_shape(src.shape(), src.shape() + src.ndim());
    require_rows(src_shape, kSlotBytes, "src");
    const bool contiguous = (src.flags() & py::array::c_style) != 0;
    require(contiguous, "src", "a contiguous array", "a strided one");
    const Array dst_array = device_array(dst, "dst", "|u1");
    require_rows(dst_array.shape, kRowBytes, "dst");
    const Array pair_array = device_array(pairs, "pairs", "<i4");
    require(pair_array.shape.size() == 3 && pair_array.shape[2] == 2, "pairs",
            "shape (batch, topk, 2)", shape_text(pair_array.shape));
    require_mapped(src.data());
    gather_ = {static_cast<const uint8_t*>(src.data()),
               reinterpret_cast<uint8_t*>(dst_array.pointer),
               reinterpret_cast<const int2*>(pair_array.pointer),
               pair_array.shape[0] * pair_array.shape[1], nullptr};
    if (!sm_launches.is_none()) {
      const Array counts = device_array(sm_launches, "sm_launches", "<u4");
      gather_.sm_launches = reinterpret_cast<uint32_t*>(counts.pointer);
    }
    require_pairs_inside(gather_, src_shape[0], dst_array.shape[0]);
  }

  void enqueue(std::uintptr_t stream) const {
    ::launch(gather_, reinterpret_cast<cudaStream_t>(stream));
    check(cudaGetLastError(), "launch");
  }

 private:
  py::tuple keep_alive_;
  Gather gather_{};
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("row_bytes") = kRowBytes;
  py::class_<Bound>(m, "Bound", py::module_local())
      .def("launch", &Bound::enqueue, py::arg("stream"));
  m.def(
      "bind",
      [](py::array src, py::object dst, py::object pairs, py::object sm_launches) {
        return Bound(std::move(src), std::move(dst), std::move(pairs), std::move(sm_launches));
      },
      py::arg("src"), py::arg("dst"), py::arg("pairs"), py::arg("sm_launches") = py::none(),
      R"(Check one gather and keep it for launching.

src: uint8 [cpu_slots, slot_bytes], pinned host memory (a numpy array)
dst: uint8 [gpu_slots, token_bytes], GPU memory (__cuda_array_interface__)
pairs: int32 [batch, topk, 2], GPU memory: (source row, destination row)
sm_launches: uint32 [SMs], GPU memory, or None: counts the blocks that started on each SM

ValueError names the argument that is wrong; RuntimeError carries CUDA's own message.)");
}
