// Python bindings of every variant. ValueError for a wrong number of cores, RuntimeError for a core
// that is not available. Releases the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "count.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  m.def(
      "count",
      [](const std::vector<int>& cores, uint64_t increments, uint64_t work) {
        if (cores.empty() || cores.size() > kMaxThreads) {
          throw py::value_error("cores: expected 1 to " + std::to_string(kMaxThreads) + ", got " +
                                std::to_string(cores.size()));
        }
        Counted counted{};
        {
          const py::gil_scoped_release release;
          counted = count({cores, increments, work});
        }
        return py::make_tuple(counted.seconds, counted.total);
      },
      py::arg("cores"), py::arg("increments"), py::arg("work"),
      "Threads on `cores` count to `increments` each, with `work` multiplications before every "
      "increment: (seconds, total counted).");
}
