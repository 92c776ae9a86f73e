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
      [](std::uintptr_t pool, std::uintptr_t places, std::uintptr_t dst, int64_t stride,
         uint32_t count, uint32_t span, int reads, int read_vectors, uint32_t first,
         std::uintptr_t stream) {
        const Walk walk{reinterpret_cast<const int4*>(pool),
                        reinterpret_cast<const int32_t*>(places),
                        reinterpret_cast<void*>(dst),
                        stride,
                        count,
                        span,
                        first,
                        reads,
                        read_vectors,
                        0};
        const cudaError_t status = launch(walk, reinterpret_cast<cudaStream_t>(stream));
        if (status != cudaSuccess) {
          throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
        }
      },
      py::arg("pool"), py::arg("places"), py::arg("dst"), py::arg("stride"), py::arg("count"),
      py::arg("span"), py::arg("reads"), py::arg("read_vectors"), py::arg("first"),
      py::arg("stream"),
      "Read `reads` lines or rows of `read_vectors` 16-byte vectors of pool, from number `first` "
      "of "
      "the walk on.");
}
