// The Python module of every compiled variant. Addresses are integers and are not checked;
// RuntimeError carries CUDA's message.
#include <pybind11/pybind11.h>

#include "../common/check.h"
#include "../common/host_clock.h"
#include "operation.h"

namespace py = pybind11;

namespace {

struct Bound {
  Fill fill;

  void launch(cudaStream_t stream) const { check(::launch(fill, stream), "launch"); }
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::class_<Bound> bound(m, "Bound", py::module_local());
  bound.def(py::init([](std::uintptr_t dst, int64_t count, float value) {
              return Bound{{reinterpret_cast<float*>(dst), count, value}};
            }),
            py::arg("dst"), py::arg("count"), py::arg("value"),
            "A fill of `count` floats (a multiple of 4) at device address dst with `value`.");
  def_launch(bound);
}
