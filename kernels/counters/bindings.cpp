// Python bindings of every variant. ValueError for a wrong number of cores or batches, RuntimeError
// for a core that is not available. Releases the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "count.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  m.def(
      "count",
      [](const std::vector<int>& cores, uint64_t batches, uint64_t work) {
        if (cores.empty() || cores.size() > kMaxThreads) {
          throw py::value_error("cores: expected 1 to " + std::to_string(kMaxThreads) + ", got " +
                                std::to_string(cores.size()));
        }
        if (batches == 0) {
          throw py::value_error("batches: expected at least 1, got 0");
        }
        Counted counted{};
        {
          const py::gil_scoped_release release;
          counted = count({cores, batches, work});
        }
        return py::make_tuple(counted.thread_seconds, counted.expected, counted.total);
      },
      py::arg("cores"), py::arg("batches"), py::arg("work"),
      "Threads on `cores` count until one of them has counted `batches` batches, with `work` "
      "multiplications before every increment: (seconds of all threads, increments made, total of "
      "the counters).");
  m.attr("BATCH") = kBatch;
}
