// Python bindings, the same for every variant. workload.py guarantees that addresses are valid.
// RuntimeError carries CUDA's message.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../common/host_clock.h"
#include "together.h"

namespace py = pybind11;

namespace {

void require(bool holds, const char* field, const std::string& expected, int64_t got) {
  if (!holds) {
    throw py::value_error(std::string(field) + ": expected " + expected + ", got " +
                          std::to_string(got));
  }
}

Part checked(int gpu, std::uintptr_t pool, int64_t pool_rows, std::uintptr_t dst,
             std::uintptr_t pairs, int64_t begin, int64_t rows, int row_bytes, bool is_neighbour,
             std::vector<int64_t> sources, int64_t set_rows) {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "GPUs");
  require(gpu >= 0 && gpu < gpus, "gpu", "less than " + std::to_string(gpus), gpu);
  require(rows > 0, "rows", "at least 1", rows);
  require(begin >= 0 && begin + rows <= set_rows, "begin",
          "at most " + std::to_string(set_rows - rows), begin);
  require(sources.size() >= 2, "sources", "at least 2 sets", static_cast<int64_t>(sources.size()));
  require(row_bytes > 0 && row_bytes <= kMaxRowBytes && row_bytes % kVector == 0, "row_bytes",
          "a multiple of " + std::to_string(kVector) + " up to " + std::to_string(kMaxRowBytes),
          row_bytes);
  Share share{};
  share.gpu = gpu;
  share.pool = reinterpret_cast<const uint8_t*>(pool);
  share.pool_rows = pool_rows;
  share.dst = reinterpret_cast<uint8_t*>(dst);
  share.pairs = reinterpret_cast<const int2*>(pairs) + begin;
  share.rows = rows;
  share.launch_rows = set_rows;
  share.destination = begin;
  share.row_bytes = row_bytes;
  share.is_neighbour = is_neighbour;
  return {share, std::move(sources), set_rows};
}

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("plan") =
      py::dict(py::arg("rows_in") = kPlan.rows_in, py::arg("moved_by") = kPlan.moved_by,
               py::arg("written_to") = kPlan.written_to, py::arg("how") = kPlan.how,
               py::arg("beside") = kPlan.beside);
  py::class_<Part>(m, "Part", py::module_local())
      .def(py::init(&checked), py::kw_only(), py::arg("gpu"), py::arg("pool"), py::arg("pool_rows"),
           py::arg("dst"), py::arg("pairs"), py::arg("begin"), py::arg("rows"),
           py::arg("row_bytes"), py::arg("is_neighbour"), py::arg("sources"), py::arg("set_rows"),
           R"(One GPU's share of every launch: `rows` pairs of each set, from number `begin` on.

pool, dst: addresses in memory of any GPU in use, or in page-locked host memory
pairs: address in memory of `gpu`, int32 [sets, set_rows, 2]: (source row, destination row)
sources: source row of pair `begin` of each set

ValueError names the argument that is wrong.)");
  py::class_<Together> bound(m, "Bound", py::module_local());
  def_launch(bound);
  bound
      .def(
          py::init([](const std::vector<Part>& parts, int gpus, std::vector<int> cpus) {
            return std::make_unique<Together>(parts, Resources{gpus, std::move(cpus)});
          }),
          py::arg("parts"), py::kw_only(), py::arg("gpus"), py::arg("cpus"),
          R"(Launches of these parts: the first one of the first set, later ones of the others in turns.

gpus: how many are in use, those of `parts` among them
cpus: CPUs that threads may be pinned to; the first one is left to the caller)")
      .def("restart", &Together::restart, "Let the next launch be the first.")
      .def(
          "rejoin",
          [](const Together& bound, std::uintptr_t stream) {
            bound.rejoin(reinterpret_cast<cudaStream_t>(stream));
          },
          py::arg("stream"), "Let the stream wait for what neighbours have left.");
}
