// The Python module of every variant. Addresses and streams are integers and are not checked,
// because every launch is timed; RuntimeError carries CUDA's message.
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "operation.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  m.def(
      "launch",
      [](std::uintptr_t src, std::uintptr_t dst, std::uintptr_t starts, int64_t rows,
         int row_vectors, int blocks, int in_flight, std::uintptr_t stream) {
        const Rows operation{reinterpret_cast<const int4*>(src),
                             reinterpret_cast<int4*>(dst),
                             reinterpret_cast<const int32_t*>(starts),
                             rows,
                             row_vectors,
                             blocks,
                             in_flight};
        const cudaError_t status = launch(operation, reinterpret_cast<cudaStream_t>(stream));
        if (status != cudaSuccess) {
          throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
        }
      },
      py::arg("src"), py::arg("dst"), py::arg("starts"), py::arg("rows"), py::arg("row_vectors"),
      py::arg("blocks"), py::arg("in_flight"), py::arg("stream"),
      "Copy `rows` rows of `row_vectors` 16-byte vectors, row i from vector starts[i] of src, to "
      "consecutive rows of dst.");
}
