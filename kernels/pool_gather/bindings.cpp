// Python's way in, the same for every variant: bind() checks once and prepares, launch() launches.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "operator.h"
#include "scratch.h"

namespace py = pybind11;

namespace {

void require(bool holds, const std::string& field, const std::string& expected,
             const std::string& got) {
  if (!holds) {
    throw py::value_error(field + ": expected " + expected + ", got " + got);
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

// A contiguous array in GPU memory, by its __cuda_array_interface__.
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
          "shape (rows, " + std::to_string(bytes) + ")", shape_text(shape));
}

std::vector<int64_t> pool_shape(const py::array& pool) {
  require(py::isinstance<py::array_t<uint8_t>>(pool), "pool", "elements of type uint8",
          text(pool.dtype()));
  const std::vector<int64_t> shape(pool.shape(), pool.shape() + pool.ndim());
  require_rows(shape, kSlotBytes, "pool");
  const bool contiguous = (pool.flags() & py::array::c_style) != 0;
  require(contiguous, "pool", "a contiguous array", "a strided one");
  return shape;
}

// The kernels and the CPU use one pointer.
void require_mapped(const void* pointer) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, pointer), "pool");
  require(attributes.type == cudaMemoryTypeHost, "pool", "page-locked host memory",
          "pageable memory");
  require(attributes.devicePointer == pointer, "pool", "memory that the GPU has at its own address",
          "another address");
}

void require_inside(int row, int64_t rows, size_t i, const char* which) {
  if (row < 0 || row >= rows) {
    require(false, "pairs[" + std::to_string(i) + "]",
            std::string("a ") + which + " row in [0, " + std::to_string(rows) + ")",
            std::to_string(row));
  }
}

// The pairs of all sets, read back once: a row outside its pool would be a fault in the middle of a
// kernel.
std::vector<int2> pairs_inside(const int2* pairs, size_t count, int64_t pool_rows,
                               int64_t dst_rows) {
  std::vector<int2> found(count);
  check(cudaMemcpy(found.data(), pairs, count * sizeof(int2), cudaMemcpyDeviceToHost), "pairs");
  for (size_t i = 0; i < count; ++i) {
    require_inside(found[i].x, pool_rows, i, "source");
    require_inside(found[i].y, dst_rows, i, "destination");
  }
  return found;
}

// A gather that was checked and prepared, and the arrays it points to, which it keeps alive. One
// Python thread at a time.
class Bound {
 public:
  Bound(py::array pool, py::object dst, py::object pairs, py::object sm_launches, py::object scales,
        const std::vector<int>& cpus)
      : keep_alive_(py::make_tuple(pool, dst, pairs, sm_launches, scales)) {
    const std::vector<int64_t> pool_rows = pool_shape(pool);
    const Array dst_array = device_array(dst, "dst", "|u1");
    require_rows(dst_array.shape, kRowBytes, "dst");
    const Array pair_array = device_array(pairs, "pairs", "<i4");
    const std::vector<int64_t>& shape = pair_array.shape;
    require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[2] == 2, "pairs",
            "shape (sets, rows, 2)", shape_text(shape));
    const Array counts = device_array(sm_launches, "sm_launches", "<u4");
    Gather gather{};
    gather.sm_launches = reinterpret_cast<uint32_t*>(counts.pointer);
    gather.scales = checked_scales(scales, pool_rows[0]);
    require_mapped(pool.data());
    gather.pool = static_cast<const uint8_t*>(pool.data());
    gather.pool_rows = pool_rows[0];
    gather.dst = reinterpret_cast<uint8_t*>(dst_array.pointer);
    gather.rows = shape[1];
    gather.pairs = reinterpret_cast<const int2*>(pair_array.pointer);
    const std::vector<int2> all = pairs_inside(
        gather.pairs, static_cast<size_t>(shape[0] * shape[1]), pool_rows[0], dst_array.shape[0]);
    for (int64_t set = 0; set < shape[0]; ++set) {
      gather.first = all[static_cast<size_t>(set * gather.rows)].x;
      sets_.push_back(gather);
      gather.pairs += gather.rows;
    }
    prepared_ = prepare(sets_, cpus);
  }

  void launch(std::uintptr_t stream, size_t set) const {
    const Gather& gather = opened(set);
    const py::gil_scoped_release release;
    prepared_.launch(gather, reinterpret_cast<cudaStream_t>(stream));
    check(cudaGetLastError(), "launch");
  }

  // Whether threads of its own read the rows, which they then have flushed.
  bool flush(size_t set) const {
    const Gather& gather = opened(set);
    if (prepared_.flush == nullptr) {
      return false;
    }
    const py::gil_scoped_release release;
    prepared_.flush(gather);
    return true;
  }

  // Ends what runs for it, and frees its scratch.
  void close() { prepared_ = {}; }

 private:
  const Gather& opened(size_t set) const {
    require(prepared_.launch != nullptr, "gather", "one that is open", "a closed one");
    require(set < sets_.size(), "set", "below " + std::to_string(sets_.size()),
            std::to_string(set));
    return sets_[set];
  }

  static const int4* checked_scales(const py::object& scales, int64_t pool_rows) {
    if (kSlotBytes == kRowBytes) {
      return nullptr;
    }
    const Array found = device_array(scales, "scales", "|u1");
    const std::vector<int64_t> expected = {pool_rows, kRowBytes - kSlotBytes};
    require(found.shape == expected, "scales", "shape " + shape_text(expected),
            shape_text(found.shape));
    return reinterpret_cast<const int4*>(found.pointer);
  }

  py::tuple keep_alive_;
  std::vector<Gather> sets_;
  Prepared prepared_;
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("row_bytes") = kRowBytes;
  py::class_<Bound>(m, "Bound", py::module_local())
      .def("launch", &Bound::launch, py::arg("stream"), py::arg("set"),
           "Gather the rows of one of the sets.")
      .def("flush", &Bound::flush, py::arg("set"),
           "Have threads of its own flush the rows of a set from the CPU's caches, and stay awake. "
           "False if it has none.")
      .def("close", &Bound::close, "End its threads and free its scratch; it is no longer used.");
  m.def(
      "bind",
      [](py::array pool, py::object dst, py::object pairs, py::object sm_launches,
         py::object scales, const std::vector<int>& cpus) {
        return Bound(std::move(pool), std::move(dst), std::move(pairs), std::move(sm_launches),
                     std::move(scales), cpus);
      },
      py::arg("pool"), py::arg("dst"), py::arg("pairs"), py::arg("sm_launches"),
      py::arg("scales") = py::none(), py::arg("cpus") = std::vector<int>(),
      R"(Check the gathers of all sets of pairs, and prepare to launch them.

pool: uint8 [pool_rows, slot_bytes], page-locked host memory (a numpy array)
dst: uint8 [dst_rows, token_bytes], GPU memory (__cuda_array_interface__)
pairs: int32 [sets, rows, 2], GPU memory: (source row, destination row)
sm_launches: uint32 [SMs], GPU memory: counts the blocks that started on each SM, where it matters
scales: uint8 [pool_rows, 16], GPU memory, where slots do not hold them
cpus: the CPUs that threads may be pinned to; the first one is left to the caller

ValueError names the argument that is wrong; RuntimeError carries CUDA's own message.)");
}
