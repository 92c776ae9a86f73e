// The bindings of a variant's method, for every study that moves pieces. Addresses and streams are
// integers; the caller owns the memory, which outlives the method.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <ctime>

#include "../host_clock.h"
#include "../require.h"
#include "events.h"
#include "transfer.h"

namespace {

// A variant's method on an idle stream, or behind a memset of `mark_bytes` at `mark`, which is
// still pending when the method is called. No time contains the memset.
class BoundMethod {
 public:
  BoundMethod(std::unique_ptr<Method> method, void* mark, size_t mark_bytes)
      : method_(std::move(method)), mark_(mark), mark_bytes_(mark_bytes) {}

  void launch(cudaStream_t stream) {
    keep_busy(stream);
    method_->launch(stream);
  }

  // Behind a memset, the second time is that of the stream: from the memset's end until the pieces
  // have arrived.
  HostTime time_launch(cudaStream_t stream, void* l2, size_t l2_bytes) {
    if (mark_bytes_ == 0) {
      return ::time_launch([&] { method_->launch(stream); }, stream, l2, l2_bytes);
    }
    ::time_launch([] {}, stream, l2, l2_bytes);  // flushes and waits
    keep_busy(stream);
    begun_.record(stream);
    const auto before = std::chrono::steady_clock::now();
    method_->launch(stream);
    const std::chrono::duration<double> submit_s = std::chrono::steady_clock::now() - before;
    arrived_.record(stream);
    return {submit_s.count(), arrived_.since(begun_)};
  }

  // CPU seconds of all threads of the process until the call returns, for `count` calls.
  std::vector<double> cpu_times(cudaStream_t stream, int count) {
    std::vector<double> taken;
    for (int i = 0; i < count; ++i) {
      check(cudaStreamSynchronize(stream), "idle stream");
      keep_busy(stream);
      const double before = process_seconds();
      method_->launch(stream);
      taken.push_back(process_seconds() - before);
    }
    check(cudaStreamSynchronize(stream), "wait for the launch");
    return taken;
  }

  Samples samples(cudaStream_t stream) { return method_->samples(stream); }

 private:
  void keep_busy(cudaStream_t stream) const {
    if (mark_bytes_ > 0) {
      check(cudaMemsetAsync(mark_, 0, mark_bytes_, stream), "work before the pieces");
    }
  }
  static double process_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  std::unique_ptr<Method> method_;
  void* mark_;
  size_t mark_bytes_;
  Event begun_;
  Event arrived_;
};

[[maybe_unused]] void require_at_least(int64_t least, const char* field, int64_t got) {
  require(got >= least, field, "at least " + std::to_string(least), std::to_string(got));
}

[[maybe_unused]] std::unique_ptr<BoundMethod> bind(std::uintptr_t host, std::uintptr_t device,
                                                   int64_t size, int64_t pitch, int64_t count,
                                                   bool to_device, std::uintptr_t landing,
                                                   std::uintptr_t source, std::uintptr_t places,
                                                   int streams, int threads, int blocks,
                                                   std::uintptr_t mark, int64_t mark_bytes) {
  require(host != 0, "host", "an address", "0");
  require(device != 0, "device", "an address", "0");
  require_at_least(1, "size", size);
  require_at_least(1, "count", count);
  require(pitch >= size, "pitch", "at least the size", std::to_string(pitch));
  require_at_least(0, "streams", streams);
  require_at_least(0, "threads", threads);
  require_at_least(0, "blocks", blocks);
  require_at_least(0, "mark_bytes", mark_bytes);
  const Pieces pieces{reinterpret_cast<uint8_t*>(host),
                      reinterpret_cast<uint8_t*>(device),
                      reinterpret_cast<uint8_t*>(landing),
                      reinterpret_cast<uint8_t*>(source),
                      reinterpret_cast<const Place*>(places),
                      size,
                      pitch,
                      count,
                      to_device,
                      streams,
                      threads,
                      blocks};
  return std::make_unique<BoundMethod>(method(pieces), reinterpret_cast<void*>(mark),
                                       static_cast<size_t>(mark_bytes));
}

// Defines the class Method and bind().
[[maybe_unused]] void def_method(pybind11::module_& m) {
  namespace py = pybind11;
  py::class_<BoundMethod> bound(m, "Method", py::module_local());
  def_launch(bound);
  bound
      .def(
          "cpu_times",
          [](BoundMethod& self, std::uintptr_t stream, int count) {
            return self.cpu_times(reinterpret_cast<cudaStream_t>(stream), count);
          },
          py::arg("stream"), py::arg("count"), py::call_guard<py::gil_scoped_release>(),
          "CPU seconds of all threads of the process until the call returns, `count` times.")
      .def(
          "samples",
          [](BoundMethod& self, std::uintptr_t stream) {
            return self.samples(reinterpret_cast<cudaStream_t>(stream));
          },
          py::arg("stream"), py::call_guard<py::gil_scoped_release>(),
          "Samples that only this method takes, by metric.");
  m.def("bind", &bind, py::arg("host"), py::arg("device"), py::kw_only(), py::arg("size"),
        py::arg("pitch"), py::arg("count") = 1, py::arg("to_device") = true, py::arg("landing") = 0,
        py::arg("source") = 0, py::arg("places") = 0, py::arg("streams") = 0,
        py::arg("threads") = 0, py::arg("blocks") = 0, py::arg("mark") = 0,
        py::arg("mark_bytes") = 0,
        R"(Bind the variant's method to `count` pieces of `size` bytes.

host: address of the first piece in host memory; without places, pieces are `pitch` bytes apart
device: address of the first piece in device memory; without places, pieces are packed
to_device: copy from host to device, else from device to host
landing: address of host memory in which a round trip or a second transfer ends, else 0
source: address of device memory that a second transfer reads, else 0
places: address of int64 [count, 2] in pinned memory: the offsets of each piece in bytes after host
  and device; 0 for none
streams: number of streams of a round trip
threads: CPU threads that pack; 0 for all that the process may use
blocks: thread blocks of a copy by the SMs; 0 for enough to keep the GPU busy
mark, mark_bytes: device memory that a memset sets before each launch, so that the call finds a busy
  stream; no time contains it

ValueError names the argument that is out of range or that the variant cannot handle.)");
}

}  // namespace
