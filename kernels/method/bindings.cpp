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
      [](std::uintptr_t src, std::uintptr_t dst, int64_t bytes, std::uintptr_t stream) {
        const Copy copy{reinterpret_cast<const uint8_t*>(src), reinterpret_cast<uint8_t*>(dst),
                        bytes};
        const cudaError_t status = launch(copy, reinterpret_cast<cudaStream_t>(stream));
        if (status != cudaSuccess) {
          throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
        }
      },
      py::arg("src"), py::arg("dst"), py::arg("bytes"), py::arg("stream"),
      "Copy `bytes` (a multiple of 16) from pinned host address src to device address dst.");
}
