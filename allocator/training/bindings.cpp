// Plugs a variant into PyTorch, and reports its statistics. Called by allocators.py and tests.
//
// PyTorch takes two functions by name and further ones, the hooks, by address.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "plug.h"

namespace py = pybind11;

namespace {

using TorchPoolId = std::pair<unsigned long long, unsigned long long>;  // c10's MempoolId_t

Stream of(cudaStream_t stream) { return reinterpret_cast<Stream>(stream); }
PoolId of(TorchPoolId pool) { return {pool.first, pool.second}; }

void record_stream(void* ptr, cudaStream_t stream) {
  Plug::instance().record_stream(ptr, of(stream));
}

void set_fraction(double fraction, int device) { Plug::instance().set_fraction(fraction, device); }

void empty_cache() { Plug::instance().empty_cache(); }

void begin_capture(int device, TorchPoolId pool, std::function<bool(cudaStream_t)> takes) {
  Plug::instance().pooled().begin_capture(device, of(pool), [takes](Stream stream) {
    return takes(reinterpret_cast<cudaStream_t>(stream));
  });
}

void end_capture(int device, TorchPoolId pool) {
  Plug::instance().pooled().end_capture(device, of(pool));
}

void release_pool(int device, TorchPoolId pool) {
  Plug::instance().pooled().release_pool(device, of(pool));
}

template <typename Function>
uintptr_t address(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

}  // namespace

// The functions that CUDAPluggableAllocator looks up by name.
extern "C" {

__attribute__((visibility("default"))) void* plug_allocate(size_t bytes, int device,
                                                           cudaStream_t stream) {
  return Plug::instance().allocate(bytes, device, of(stream));
}

__attribute__((visibility("default"))) void plug_free(void* ptr, size_t /*bytes*/, int device,
                                                      cudaStream_t stream) {
  Plug::instance().deallocate(ptr, device, of(stream));
}

}  // extern "C"

PYBIND11_MODULE(variant, m) {
  py::dict hooks;
  hooks["set_record_stream_fn"] = address(&record_stream);
  hooks["set_memory_fraction_fn"] = address(&set_fraction);
  hooks["set_reset_fn"] = address(&empty_cache);
  hooks["set_begin_allocate_to_pool"] = address(&begin_capture);
  hooks["set_end_allocate_to_pool_fn"] = address(&end_capture);
  hooks["set_release_pool"] = address(&release_pool);
  m.attr("HOOKS") = hooks;

  m.def("use_host", &Plug::use_host, py::arg("capacity"),
        "Simulate a device of `capacity` bytes. It must be called before all others here.");
  m.def(
      "allocate",
      [](size_t bytes, int device, Stream stream) {
        return reinterpret_cast<uintptr_t>(Plug::instance().allocate(bytes, device, stream));
      },
      py::arg("bytes"), py::arg("device") = 0, py::arg("stream") = 0,
      "Called by PyTorch, like the functions that follow.");
  m.def(
      "free",
      [](uintptr_t ptr, int device, Stream stream) {
        Plug::instance().deallocate(reinterpret_cast<void*>(ptr), device, stream);
      },
      py::arg("ptr"), py::arg("device") = 0, py::arg("stream") = 0);
  m.def("empty_cache", &empty_cache);
  m.def("set_fraction", &set_fraction, py::arg("fraction"), py::arg("device") = 0);
  m.def(
      "begin_capture",
      [](TorchPoolId pool, Stream stream) {
        begin_capture(0, pool, [stream](cudaStream_t one) { return of(one) == stream; });
      },
      py::arg("pool"), py::arg("stream"));
  m.def("end_capture", [](TorchPoolId pool) { end_capture(0, pool); }, py::arg("pool"));
  m.def("release_pool", [](TorchPoolId pool) { release_pool(0, pool); }, py::arg("pool"));

  m.def(
      "statistics",
      [](int device) {
        const Statistics all = Plug::instance().pooled().statistics(device);
        py::dict statistics;
        statistics["reserved"] = all.reserved;
        statistics["peak_reserved"] = all.peak_reserved;
        statistics["peak_active"] = all.peak_active;
        statistics["driver_calls"] = all.driver_calls;
        return statistics;
      },
      py::arg("device") = 0, "Bytes and the driver call count since the last reset.");
  m.def(
      "reset_statistics", [](int device) { Plug::instance().pooled().reset_statistics(device); },
      py::arg("device") = 0, "Reset peaks to the present use.");
  m.def(
      "start_counting", [] { Plug::instance().start_counting(); },
      "Count time and number of calls from now on.");
  m.def(
      "stop_counting",
      [] {
        const TimeInCalls counted = Plug::instance().stop_counting();
        return py::make_tuple(counted.seconds, counted.allocations);
      },
      "Seconds in calls that allocate and free since start_counting, and allocations.");
}
