// Python bindings, the same for every compiled variant: bind() checks once and prepares all layers,
// advance() makes the ids of a step current, launch_layer() does the step of one layer.
#include <numeric>
#include <utility>
#include <vector>

#include "../common/arrays.h"
#include "../common/check.h"
#include "../common/memory.h"
#include "../hot_set/operator.h"
#include "absolute_slots.h"

namespace py = pybind11;

namespace {

// Arrays of all layers, and how to do a step of each.
class Bound {
 public:
  Bound(const py::array& pool, py::object places, py::object ids, py::object out, py::object hot,
        py::object rows, py::object last_used, const std::vector<int>& cpus)
      : keep_alive_(py::make_tuple(pool, places, ids, out, hot, rows, last_used)) {
    const Array host =
        host_array<uint8_t>(pool, "pool", "uint8", {"rows", kRowBytes}, kVectorAlignment);
    const Array trace =
        device_array(ids, "ids", "<i4", {"steps", "layers", "requests", "topk"}, kVectorAlignment);
    const Array state =
        device_array(rows, "rows", "<i4", {"layers", "requests", "slots"}, kVectorAlignment);
    steps_ = trace.shape[0];
    const int64_t layers = trace.shape[1];
    const int64_t requests = trace.shape[2];
    const int64_t topk = trace.shape[3];
    const int64_t slots = state.shape[2];
    require_shape(state.shape, {layers, requests, slots}, "rows");
    const Array used =
        device_array(last_used, "last_used", "<i4", {layers, requests, slots}, kVectorAlignment);
    const Array of_context =
        device_array(places, "places", "<i4", {layers, requests, "context_rows"}, kVectorAlignment);
    const Array at = device_array(out, "out", "<i4", {layers, requests, topk}, kVectorAlignment);
    const Array buffer =
        device_array(hot, "hot", "|u1", {layers, requests, slots, kRowBytes}, kVectorAlignment);
    const int64_t context_rows = of_context.shape[2];
    require(topk <= kMaxTopk, "topk", "at most 2048", std::to_string(topk));
    require(slots <= kMaxSlots && slots % kWarp == 0, "slots", "a multiple of 32, at most 8192",
            std::to_string(slots));
    require(context_rows <= kMaxContextRows, "context_rows", "at most 131072",
            std::to_string(context_rows));
    trace_ = trace.as<const int32_t>();
    count_ = static_cast<size_t>(layers * requests * topk);
    ids_ = on_device<int32_t>(count_);
    numbers_ = on_device<int32_t>(kNumbers + 1);
    std::vector<int32_t> numbers(kNumbers + 1);
    std::iota(numbers.begin() + 1, numbers.end(), 0);
    check(cudaMemcpy(numbers_.get(), numbers.data(), numbers.size() * sizeof(int32_t),
                     cudaMemcpyHostToDevice),
          "numbers of steps");
    for (int64_t layer = 0; layer < layers; ++layer) {
      const int64_t lists = layer * requests;
      sets_.push_back({host.as<const uint8_t>(), host.shape[0],
                       of_context.as<const int32_t>() + lists * context_rows,
                       ids_.get() + lists * topk, numbers_.get(), at.as<int32_t>() + lists * topk,
                       buffer.as<uint8_t>() + lists * slots * kRowBytes,
                       state.as<int32_t>() + lists * slots, used.as<int32_t>() + lists * slots,
                       static_cast<int>(requests), static_cast<int>(topk), static_cast<int>(slots),
                       static_cast<int>(context_rows), kChosen});
    }
    prepared_ = prepare(sets_, cpus);
    check(cudaDeviceSynchronize(), "prepare");
  }

  void advance(std::uintptr_t stream, int64_t index, int number) const {
    require(index >= 0 && index < steps_, "step", "below " + std::to_string(steps_),
            std::to_string(index));
    require(number >= 0 && number < kNumbers, "number", "below " + std::to_string(kNumbers),
            std::to_string(number));
    const auto on = reinterpret_cast<cudaStream_t>(stream);
    check(cudaMemcpyAsync(ids_.get(), trace_ + index * static_cast<int64_t>(count_),
                          count_ * sizeof(int32_t), cudaMemcpyDeviceToDevice, on),
          "ids");
    check(cudaMemcpyAsync(numbers_.get(), numbers_.get() + 1 + number, sizeof(int32_t),
                          cudaMemcpyDeviceToDevice, on),
          "number of the step");
  }

  void launch_layer(std::uintptr_t stream, int layer) const {
    require(prepared_.launch != nullptr, "layers", "open ones", "closed ones");
    const py::gil_scoped_release release;
    const auto on = reinterpret_cast<cudaStream_t>(stream);
    prepared_.launch(layer, on);
    make_absolute(sets_.at(static_cast<size_t>(layer)), on);
    check(cudaGetLastError(), "launch");
  }

  void close() { prepared_ = {}; }

 private:
  static constexpr int kNumbers = 1 << 16;  // steps that bound layers can do

  py::tuple keep_alive_;
  const int32_t* trace_ = nullptr;
  int64_t steps_ = 0;
  size_t count_ = 0;                    // ids of a step
  std::shared_ptr<int32_t[]> ids_;      // the current step's
  std::shared_ptr<int32_t[]> numbers_;  // the current step's number, then 0, 1, 2 ...
  std::vector<HotSet> sets_;
  Prepared prepared_;
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::class_<Bound>(m, "Bound", py::module_local())
      .def("advance", &Bound::advance, py::arg("stream"), py::arg("index"), py::arg("number"),
           "Enqueue copies that make the ids of trace step `index` current, as step `number`.")
      .def("launch_layer", &Bound::launch_layer, py::arg("stream"), py::arg("layer"),
           "Do the current step of one layer, or enqueue it.")
      .def("close", &Bound::close, "End the threads and free the scratch memory.");
  m.def(
      "bind",
      [](const py::array& pool, py::object places, py::object ids, py::object out, py::object hot,
         py::object rows, py::object last_used, const std::vector<int>& cpus) {
        return Bound(pool, std::move(places), std::move(ids), std::move(out), std::move(hot),
                     std::move(rows), std::move(last_used), cpus);
      },
      py::arg("pool"), py::arg("places"), py::arg("ids"), py::arg("out"), py::arg("hot"),
      py::arg("rows"), py::arg("last_used"), py::arg("cpus") = std::vector<int>(),
      R"(Check the hot sets of all layers and prepare their steps.

pool: uint8 [pool_rows, token_bytes], pinned host memory (a numpy array)
places: int32 [layers, requests, context_rows], GPU memory (__cuda_array_interface__): pool row of
  each row of each context
ids: int32 [steps, layers, requests, topk], GPU memory: rows of each step
out: int32 [layers, requests, topk], GPU memory: slot of each id among those of all requests
hot: uint8 [layers, requests, slots, token_bytes], GPU memory
rows, last_used: int32 [layers, requests, slots], GPU memory, all -1: row in each slot, and the step
  that used it last
cpus: the CPUs that threads may be pinned to; the first one is left to the caller

ValueError names the wrong argument; RuntimeError carries CUDA's own message.)");
}
