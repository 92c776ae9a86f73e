// The Python module of every variant.
#include "../common/moves/bindings.h"

namespace py = pybind11;

namespace {

// Two methods at once: the second one on a stream of its own.
class Both {
 public:
  Both(BoundMethod& there, BoundMethod& back) : there_(there), back_(back) {}

  void launch(cudaStream_t stream) {
    const cudaStream_t side = side_.fork(stream);
    there_.launch(stream);
    back_.launch(side);
    side_.join(stream);
  }

 private:
  BoundMethod& there_;
  BoundMethod& back_;
  const SideStream side_;
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  def_method(m);
  py::class_<Both> both(m, "Both", py::module_local());
  both.def(py::init<BoundMethod&, BoundMethod&>(), py::arg("there"), py::arg("back"),
           py::keep_alive<1, 2>(), py::keep_alive<1, 3>(),
           "Two methods at once, the second one on a stream of its own.");
  def_launch(both);
}
