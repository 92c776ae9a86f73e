// The Python module of every compiled variant. Addresses are integers and are not checked;
// RuntimeError carries CUDA's message.
#include <pybind11/pybind11.h>

#include "../common/check.h"
#include "../common/host_clock.h"
#include "operation.h"

namespace py = pybind11;

namespace {

struct Bound {
  Copy copy;

  void launch(cudaStream_t stream) const { check(::launch(copy, stream), "launch"); }
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::class_<Bound> bound(m, "Bound", py::module_local());
  bound.def(py::init([](std::uintptr_t src, std::uintptr_t dst, int64_t bytes) {
              return Bound{
                  {reinterpret_cast<const uint8_t*>(src), reinterpret_cast<uint8_t*>(dst), bytes}};
            }),
            py::arg("src"), py::arg("dst"), py::arg("bytes"),
            "A copy of `bytes` (a multiple of 16) from pinned host address src to device address "
            "dst.");
  def_launch(bound);
}
