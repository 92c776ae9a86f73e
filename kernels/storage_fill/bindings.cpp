// The Python module of every compiled variant. Addresses and streams are integers and are not
// checked, because every launch is timed; RuntimeError carries CUDA's message.
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "operation.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  m.def(
      "launch",
      [](std::uintptr_t dst, int64_t count, float value, std::uintptr_t stream) {
        const Fill fill{reinterpret_cast<float*>(dst), count, value};
        const cudaError_t status = launch(fill, reinterpret_cast<cudaStream_t>(stream));
        if (status != cudaSuccess) {
          throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
        }
      },
      py::arg("dst"), py::arg("count"), py::arg("value"), py::arg("stream"),
      "Make `count` floats (a multiple of 4) at device address dst `value`.");
}
