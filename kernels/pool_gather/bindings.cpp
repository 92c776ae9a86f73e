// Python bindings, the same for every variant: bind() checks once and prepares, launch() launches.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../common/arrays.h"
#include "../common/gather_arguments.h"
#include "../common/host_clock.h"
#include "operator.h"

namespace py = pybind11;

namespace {

// The kernels and the CPU use one pointer.
void require_pinned(const void* pointer) {
  const cudaPointerAttributes attributes = attributes_of(pointer, "pool");
  require(attributes.type == cudaMemoryTypeHost, "pool", "pinned host memory", "pageable memory");
  require(attributes.devicePointer == pointer, "pool", "memory at the same address on the GPU",
          "another address");
}

// The table of scales; null where the slots hold them.
const int4* checked_scales(const py::object& scales, int64_t pool_rows) {
  if (kSlotBytes == kRowBytes) {
    return nullptr;
  }
  return device_array(scales, "scales", "|u1", {pool_rows, kRowBytes - kSlotBytes},
                      kVectorAlignment)
      .as<const int4>();
}

// A checked and prepared gather that keeps its arrays alive. For one Python thread at a time.
class Bound {
 public:
  Bound(py::array pool, py::object dst, py::object pairs, py::object sm_launches, py::object scales,
        const std::vector<int>& cpus, py::array current)
      : keep_alive_(py::make_tuple(pool, dst, pairs, sm_launches, scales, current)),
        current_(
            host_array<int64_t>(current, "current", "int64", {1}, sizeof(int64_t)).as<int64_t>()) {
    const Array source =
        host_array<uint8_t>(pool, "pool", "uint8", {"rows", kSlotBytes}, kVectorAlignment);
    const Array destination =
        device_array(dst, "dst", "|u1", {"rows", kRowBytes}, kVectorAlignment);
    const Array pair = device_array(pairs, "pairs", "<i4", {"sets", "rows", 2}, sizeof(int2));
    const Array counts = device_array(sm_launches, "sm_launches", "<u4", {"SMs"}, sizeof(uint32_t));
    Gather gather{};
    gather.pool_rows = source.shape[0];
    gather.scales = checked_scales(scales, gather.pool_rows);
    require_pinned(source.as<void>());
    require_count_per_sm(counts);
    gather.sm_launches = counts.as<uint32_t>();
    gather.pool = source.as<const uint8_t>();
    gather.dst = destination.as<uint8_t>();
    gather.rows = pair.shape[1];
    gather.pairs = pair.as<const int2>();
    const std::vector<int2> all =
        checked_pairs(gather.pairs, static_cast<size_t>(pair.shape[0] * gather.rows),
                      gather.pool_rows, destination.shape[0]);
    for (int64_t set = 0; set < pair.shape[0]; ++set) {
      gather.first = all[static_cast<size_t>(set * gather.rows)].x;
      sets_.push_back(gather);
      gather.pairs += gather.rows;
    }
    prepared_ = prepare(sets_, cpus);
  }

  // Gathers the rows of the next set, which becomes the current one.
  void launch(cudaStream_t stream) const {
    const size_t set = (static_cast<size_t>(*current_) + 1) % sets_.size();
    prepared_.launch(opened(set), stream);
    *current_ = static_cast<int64_t>(set);
    check(cudaGetLastError(), "launch");
  }

  // Has the threads that pack flush the rows of a set. False if the variant has no such threads.
  bool flush(size_t set) const {
    const Gather& gather = opened(set);
    if (prepared_.flush == nullptr) {
      return false;
    }
    const py::gil_scoped_release release;
    prepared_.flush(gather);
    return true;
  }

  // Ends the variant's threads and frees its scratch memory.
  void close() { prepared_ = {}; }

 private:
  const Gather& opened(size_t set) const {
    require(prepared_.launch != nullptr, "gather", "one that is open", "a closed one");
    require(set < sets_.size(), "set", "below " + std::to_string(sets_.size()),
            std::to_string(set));
    return sets_[set];
  }

  py::tuple keep_alive_;
  int64_t* current_;
  std::vector<Gather> sets_;
  Prepared prepared_;
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("row_bytes") = kRowBytes;
  py::class_<Bound> bound(m, "Bound", py::module_local());
  def_launch(bound);
  bound
      .def("flush", &Bound::flush, py::arg("set"),
           "Flush the rows of a set from the CPU's caches by the threads that pack, which stay "
           "awake. False if the variant has no such threads.")
      .def("close", &Bound::close, "End the threads and free the scratch memory.");
  m.def(
      "bind",
      [](py::array pool, py::object dst, py::object pairs, py::object sm_launches,
         py::object scales, const std::vector<int>& cpus, py::array current) {
        return Bound(std::move(pool), std::move(dst), std::move(pairs), std::move(sm_launches),
                     std::move(scales), cpus, std::move(current));
      },
      py::arg("pool"), py::arg("dst"), py::arg("pairs"), py::arg("sm_launches"), py::arg("scales"),
      py::arg("cpus"), py::arg("current"),
      R"(Check the gathers of all sets of pairs, and prepare to launch them.

pool: uint8 [pool_rows, slot_bytes], pinned host memory (a numpy array)
dst: uint8 [dst_rows, token_bytes], GPU memory (__cuda_array_interface__)
pairs: int32 [sets, rows, 2], GPU memory: (source row, destination row)
sm_launches: uint32 [SMs], GPU memory: counts the blocks that started on each SM, if the variant
  counts them
scales: uint8 [pool_rows, 16], GPU memory, where slots do not hold them
cpus: the CPUs that threads may be pinned to; the first one is left to the caller
current: int64 [1], number of the latest launch's set; each launch moves it on to the next set

ValueError names the wrong argument; RuntimeError carries CUDA's own message.)");
}
