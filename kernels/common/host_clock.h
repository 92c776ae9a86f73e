// Host times: one clock for every binding. It starts in the state in which NVBench's device times
// begin: the L2 has just been flushed and the stream is idle. Internal linkage, as in require.h.
#pragma once

#include <cuda_runtime.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "check.h"

// Seconds of the monotonic clock from a call until it returned, and until its work was done.
struct HostTime {
  double submit_s;
  double host_s;
};

namespace {

// Times `launch()` and the wait for `stream`, after a flush of the L2 by a memset of `l2_bytes` at
// `l2` (0: no flush). A null stream stands for work of the CPU alone: no flush and no wait. The
// caller releases the GIL. Throws std::runtime_error with CUDA's message.
template <class Launch>
HostTime time_launch(const Launch& launch, cudaStream_t stream, void* l2, size_t l2_bytes) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  if (stream != nullptr) {
    if (l2_bytes > 0) {
      check(cudaMemsetAsync(l2, 0, l2_bytes, stream), "flush of the L2");
    }
    check(cudaStreamSynchronize(stream), "idle stream");
  }
  const Clock::time_point before = Clock::now();
  launch();
  const Clock::time_point submitted = Clock::now();
  if (stream != nullptr) {
    check(cudaStreamSynchronize(stream), "wait for the launch");
  }
  const Clock::time_point done = Clock::now();
  return {Seconds(submitted - before).count(), Seconds(done - before).count()};
}

// Adds launch() and time_launch() to the binding of a class whose member launch(cudaStream_t) does
// the work once, and the addresses by which other C++ code does the work without Python. Both
// functions release the GIL. A member time_launch() takes the place of the function above.
template <class Bound>
void def_launch(Bound& bound) {
  using Operation = typename Bound::type;
  namespace py = pybind11;
  bound
      .def(
          "launch",
          [](Operation& operation, std::uintptr_t stream) {
            const py::gil_scoped_release release;
            operation.launch(reinterpret_cast<cudaStream_t>(stream));
          },
          py::arg("stream"), "Do the work once; `stream` is a cudaStream_t.")
      .def(
          "time_launch",
          [](Operation& operation, std::uintptr_t stream, std::uintptr_t l2, size_t l2_bytes) {
            const auto on = reinterpret_cast<cudaStream_t>(stream);
            const HostTime time = [&] {
              const py::gil_scoped_release release;
              void* const at = reinterpret_cast<void*>(l2);
              if constexpr (requires { operation.time_launch(on, at, l2_bytes); }) {
                return operation.time_launch(on, at, l2_bytes);
              } else {
                return time_launch([&] { operation.launch(on); }, on, at, l2_bytes);
              }
            }();
            return py::make_tuple(time.submit_s, time.host_s);
          },
          py::arg("stream"), py::arg("l2"), py::arg("l2_bytes"),
          "Flush the L2 by a memset, then launch and wait: seconds until the call returned, and "
          "until its work was done.")
      .def_property_readonly(
          "addresses",
          [](Operation& operation) {
            void (*const launch)(void*, cudaStream_t) = [](void* object, cudaStream_t stream) {
              static_cast<Operation*>(object)->launch(stream);
            };
            return py::make_tuple(reinterpret_cast<std::uintptr_t>(launch),
                                  reinterpret_cast<std::uintptr_t>(&operation));
          },
          "Addresses of a function (object, stream) that does the work once, and of the object.");
}

}  // namespace
