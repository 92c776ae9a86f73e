// Python's way in, the same for every variant. ValueError for a wrong number of cores, RuntimeError
// for one that cannot be had. Other Python threads run meanwhile.
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
      "A thread on each of `cores` increments so often, with `work` multiplications before each: "
      "(seconds, total counted).");
}
