// Python bindings, the same for every compiled variant: bind() checks once and prepares, advance()
// makes the ids of a step current, launch() does this step.
#include <string>
#include <utility>
#include <vector>

#include "../common/arrays.h"
#include "../common/check.h"
#include "../common/host_clock.h"
#include "../common/memory.h"
#include "operator.h"

namespace py = pybind11;

namespace {

// The kernels and the CPU use one pointer.
void require_pinned(const void* pointer) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, pointer), "pool");
  require(attributes.type == cudaMemoryTypeHost, "pool", "pinned host memory", "pageable memory");
  require(attributes.devicePointer == pointer, "pool", "memory at the same address on the GPU",
          "another address");
}

void require_at_most(int64_t got, int64_t limit, const std::string& field) {
  require(got <= limit, field, "at most " + std::to_string(limit), std::to_string(got));
}

// Raises a ValueError unless all `count` values in device memory are in [0, limit): any other one
// would be a fault in the middle of a kernel.
void require_values_below(const int32_t* values, size_t count, int64_t limit,
                          const std::string& field) {
  std::vector<int32_t> found(count);
  check(cudaMemcpy(found.data(), values, count * sizeof(int32_t), cudaMemcpyDeviceToHost),
        field.c_str());
  for (size_t i = 0; i < count; ++i) {
    if (found[i] < 0 || found[i] >= limit) {
      require(false, field + "[" + std::to_string(i) + "]",
              "a row in [0, " + std::to_string(limit) + ")", std::to_string(found[i]));
    }
  }
}

std::shared_ptr<CUgraphExec_st> captured(const Launch& launch, int layers) {
  const auto stream = new_stream();
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  for (int layer = 0; layer < layers; ++layer) {
    launch(layer, stream.get());
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "capture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "graph");
  return {made, cudaGraphExecDestroy};
}

struct Arrays {
  py::array pool;
  py::object places, trace, out, hot, rows, last_used;
};

// Checked and prepared hot sets that keep their arrays alive. For one Python thread at a time.
class Bound {
 public:
  Bound(const Arrays& given, const std::vector<int>& cpus, int share_32nds)
      : keep_alive_(py::make_tuple(given.pool, given.places, given.trace, given.out, given.hot,
                                   given.rows, given.last_used)) {
    const Array pool =
        host_array<uint8_t>(given.pool, "pool", "uint8", {"rows", kRowBytes}, kVectorAlignment);
    const Array trace =
        device_array(given.trace, "ids", "<i4", {"steps", "requests", "topk"}, sizeof(int32_t));
    const Array rows =
        device_array(given.rows, "rows", "<i4", {"layers", "requests", "slots"}, kVectorAlignment);
    const int64_t layers = rows.shape[0];
    const int64_t requests = trace.shape[1];
    const int64_t topk = trace.shape[2];
    const int64_t slots = rows.shape[2];
    require_shape(rows.shape, {layers, requests, slots}, "rows");
    const Array used = device_array(given.last_used, "last_used", "<i4", {layers, requests, slots},
                                    kVectorAlignment);
    const Array places = device_array(given.places, "places", "<i4",
                                      {layers, requests, "context_rows"}, sizeof(int32_t));
    const Array out =
        device_array(given.out, "out", "<i4", {layers, requests, topk}, sizeof(int32_t));
    const Array hot = device_array(given.hot, "hot", "|u1", {layers, requests, slots, kRowBytes},
                                   kVectorAlignment);
    const int64_t context_rows = places.shape[2];
    require_at_most(topk, kMaxTopk, "topk");
    require_at_most(topk, slots, "topk, with as many slots,");
    require_at_most(slots, kMaxSlots, "slots");
    require(slots % kWarp == 0, "slots", "a multiple of 32", std::to_string(slots));
    require_at_most(context_rows, kMaxContextRows, "context_rows");
    require(share_32nds == kChosen || (share_32nds >= 0 && share_32nds <= 32), "share_32nds",
            "0 to 32, or " + std::to_string(kChosen), std::to_string(share_32nds));
    require_pinned(pool.as<void>());
    trace_ = trace.as<const int32_t>();
    steps_ = trace.shape[0];
    ids_count_ = static_cast<size_t>(requests * topk);
    require_values_below(trace_, static_cast<size_t>(steps_) * ids_count_, context_rows, "ids");
    require_values_below(places.as<const int32_t>(),
                         static_cast<size_t>(layers * requests * context_rows), pool.shape[0],
                         "places");
    ids_ = on_device<int32_t>(ids_count_);
    numbers_ = on_device<int32_t>(kNumbers + 1);
    std::vector<int32_t> numbers(kNumbers + 1);
    for (int i = 0; i < kNumbers; ++i) {
      numbers[static_cast<size_t>(i) + 1] = i;
    }
    check(cudaMemcpy(numbers_.get(), numbers.data(), numbers.size() * sizeof(int32_t),
                     cudaMemcpyHostToDevice),
          "numbers of steps");
    std::vector<HotSet> sets;
    for (int64_t layer = 0; layer < layers; ++layer) {
      sets.push_back({pool.as<const uint8_t>(), pool.shape[0],
                      places.as<const int32_t>() + layer * requests * context_rows, ids_.get(),
                      numbers_.get(), out.as<int32_t>() + layer * requests * topk,
                      hot.as<uint8_t>() + layer * requests * slots * kRowBytes,
                      rows.as<int32_t>() + layer * requests * slots,
                      used.as<int32_t>() + layer * requests * slots, static_cast<int>(requests),
                      static_cast<int>(topk), static_cast<int>(slots),
                      static_cast<int>(context_rows), share_32nds});
    }
    prepared_ = prepare(sets, cpus);
    check(cudaDeviceSynchronize(), "prepare");
    layers_ = static_cast<int>(layers);
    if (layers_ > 1) {
      graph_ = captured(prepared_.launch, layers_);
    }
  }

  // Enqueues copies that make the ids of trace step `index` current, as step `number`.
  void advance(std::uintptr_t stream, int64_t index, int number) const {
    require_open();
    require(index >= 0 && index < steps_, "step", "below " + std::to_string(steps_),
            std::to_string(index));
    require(number >= 0 && number < kNumbers, "number", "below " + std::to_string(kNumbers),
            std::to_string(number));
    const auto on = reinterpret_cast<cudaStream_t>(stream);
    check(cudaMemcpyAsync(ids_.get(), trace_ + index * static_cast<int64_t>(ids_count_),
                          ids_count_ * sizeof(int32_t), cudaMemcpyDeviceToDevice, on),
          "ids");
    check(cudaMemcpyAsync(numbers_.get(), numbers_.get() + 1 + number, sizeof(int32_t),
                          cudaMemcpyDeviceToDevice, on),
          "number of the step");
    for (int layer = 0; prepared_.before_step != nullptr && layer < layers_; ++layer) {
      prepared_.before_step(layer, on);
    }
  }

  // Does the current step of all layers.
  void launch(cudaStream_t stream) const {
    require_open();
    if (graph_ != nullptr) {
      check(cudaGraphLaunch(graph_.get(), stream), "launch");
    } else {
      prepared_.launch(0, stream);
      check(cudaGetLastError(), "launch");
    }
  }

  // Has the variant's threads flush these pool rows. False if it has no such threads.
  bool flush(const std::vector<int64_t>& pool_rows) const {
    require_open();
    if (prepared_.flush == nullptr) {
      return false;
    }
    const py::gil_scoped_release release;
    prepared_.flush(pool_rows);
    return true;
  }

  // Writes state that the variant keeps in host memory to the arrays.
  void publish() const {
    require_open();
    if (prepared_.publish != nullptr) {
      prepared_.publish();
    }
  }

  // Ends the variant's threads and frees its scratch memory.
  void close() {
    graph_ = nullptr;
    prepared_ = {};
  }

 private:
  static constexpr int kNumbers = 1 << 16;  // steps that a bound variant can do

  void require_open() const {
    require(prepared_.launch != nullptr, "hot set", "one that is open", "a closed one");
  }

  py::tuple keep_alive_;
  const int32_t* trace_ = nullptr;
  int64_t steps_ = 0;
  int layers_ = 0;
  size_t ids_count_ = 0;
  std::shared_ptr<int32_t[]> ids_;      // the current step's
  std::shared_ptr<int32_t[]> numbers_;  // the current step's number, then 0, 1, 2 ...
  Prepared prepared_;
  std::shared_ptr<CUgraphExec_st> graph_;  // of all layers, if there are several
};

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("row_bytes") = kRowBytes;
  py::class_<Bound> bound(m, "Bound", py::module_local());
  def_launch(bound);
  bound
      .def("advance", &Bound::advance, py::arg("stream"), py::arg("index"), py::arg("number"),
           "Enqueue copies that make the ids of trace step `index` current, as step `number`.")
      .def("flush", &Bound::flush, py::arg("pool_rows"),
           "Flush these rows from the CPU's caches by the variant's threads, which stay awake. "
           "False if the variant has no such threads.")
      .def("publish", &Bound::publish,
           "Write state that the variant keeps in host memory to `rows` and `last_used`.")
      .def("close", &Bound::close, "End the threads and free the scratch memory.");
  m.def(
      "bind",
      [](py::array pool, py::object places, py::object ids, py::object out, py::object hot,
         py::object rows, py::object last_used, const std::vector<int>& cpus, int share_32nds) {
        return Bound({std::move(pool), std::move(places), std::move(ids), std::move(out),
                      std::move(hot), std::move(rows), std::move(last_used)},
                     cpus, share_32nds);
      },
      py::arg("pool"), py::arg("places"), py::arg("ids"), py::arg("out"), py::arg("hot"),
      py::arg("rows"), py::arg("last_used"), py::arg("cpus") = std::vector<int>(),
      py::arg("share_32nds") = kChosen,
      R"(Check hot sets and all their steps, and prepare to launch them.

pool: uint8 [pool_rows, token_bytes], pinned host memory (a numpy array)
places: int32 [layers, requests, context_rows], GPU memory (__cuda_array_interface__): pool row of
  each row of each context
ids: int32 [steps, requests, topk], GPU memory: rows of each step, the same in all layers
out: int32 [layers, requests, topk], GPU memory: slot of each id
hot: uint8 [layers, requests, slots, token_bytes], GPU memory
rows, last_used: int32 [layers, requests, slots], GPU memory, all -1: row in each slot, and the step
  that used it last
cpus: the CPUs that threads may be pinned to; the first one is left to the caller
share_32nds: share of the misses that the SMs read in place while the CPU packs the others; -1 lets
  the variant choose

With several layers, a launch is one CUDA graph of all of them.

ValueError names the wrong argument; RuntimeError carries CUDA's own message.)");
}
