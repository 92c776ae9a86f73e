// The Python module of every variant. Addresses are integers and are not checked; RuntimeError
// carries CUDA's message.
#include <pybind11/pybind11.h>

#include "../common/check.h"
#include "../common/host_clock.h"
#include "operation.h"

namespace py = pybind11;

namespace {

struct Bound {
  Rows rows;

  void launch(cudaStream_t stream) const { check(::launch(rows, stream), "launch"); }
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::class_<Bound> bound(m, "Bound", py::module_local());
  bound.def(
      py::init([](std::uintptr_t src, std::uintptr_t dst, std::uintptr_t starts, int64_t rows,
                  int row_vectors, int blocks, int in_flight) {
        return Bound{{reinterpret_cast<const int4*>(src), reinterpret_cast<int4*>(dst),
                      reinterpret_cast<const int32_t*>(starts), rows, row_vectors, blocks,
                      in_flight}};
      }),
      py::arg("src"), py::arg("dst"), py::arg("starts"), py::arg("rows"), py::arg("row_vectors"),
      py::arg("blocks"), py::arg("in_flight"),
      "A copy of `rows` rows of `row_vectors` 16-byte vectors, row i from vector starts[i] of "
      "src, to consecutive rows of dst.");
  def_launch(bound);
}
