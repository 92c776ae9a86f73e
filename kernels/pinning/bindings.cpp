// The Python module of every variant. All calls release the GIL. ValueError for arguments that
// cannot be met, before anything is pinned; RuntimeError carries CUDA's or the system's message.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "../common/memory_limit.h"
#include "../common/require.h"
#include "neighbour.h"
#include "operation.h"

namespace py = pybind11;

namespace {

// Share of the free memory that may be pinned. The rest is for page tables and other programs.
constexpr double kShareOfFree = 0.8;

// Pinned memory, and when it was pinned.
struct Pinned {
  std::unique_ptr<PinnedMemory> memory;
  int64_t started_ns;
  int64_t done_ns;
};

Pinned make_pinned(int64_t bytes, int64_t chunk_bytes, int threads) {
  require(bytes > 0, "bytes", "at least 1", std::to_string(bytes));
  require(chunk_bytes > 0 && chunk_bytes % kHugePage == 0, "chunk_bytes",
          "a positive multiple of " + std::to_string(kHugePage), std::to_string(chunk_bytes));
  require(threads >= 1, "threads", "at least 1", std::to_string(threads));
  const auto limit = static_cast<int64_t>(double(allocatable_bytes()) * kShareOfFree);
  require(bytes <= limit, "bytes", "at most " + std::to_string(limit) + " of the free memory",
          std::to_string(bytes));
  const py::gil_scoped_release release;
  auto memory = std::make_unique<PinnedMemory>(static_cast<size_t>(bytes));
  const int64_t started = now_ns();
  pin({static_cast<size_t>(chunk_bytes), threads}, *memory);
  return {std::move(memory), started, now_ns()};
}

const PinnedMemory& require_range(const Pinned& pinned, size_t offset, size_t bytes) {
  const PinnedMemory& memory = *pinned.memory;
  require(memory.data() != nullptr, "memory", "pinned memory", "memory that was unpinned");
  require(offset <= memory.bytes() && bytes <= memory.bytes() - offset, "offset and bytes",
          "a range within " + std::to_string(memory.bytes()) + " bytes",
          std::to_string(offset) + " and " + std::to_string(bytes));
  return memory;
}

cudaMemcpyKind kind_of(bool to_device) {
  return to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
}

char* device_pointer(std::uintptr_t device) { return reinterpret_cast<char*>(device); }

cudaStream_t stream_of(std::uintptr_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::class_<Pinned>(m, "Pinned", py::module_local())
      .def(py::init(&make_pinned), py::arg("bytes"), py::arg("chunk_bytes"), py::arg("threads"),
           "Pin `bytes` bytes of host memory.")
      .def_property_readonly(
          "address",
          [](const Pinned& self) { return reinterpret_cast<std::uintptr_t>(self.memory->data()); })
      .def_property_readonly("chunk_bytes",
                             [](const Pinned& self) { return self.memory->chunk_bytes(); })
      .def_property_readonly(
          "pinned_ns",
          [](const Pinned& self) { return py::make_tuple(self.started_ns, self.done_ns); },
          "Begin and end of the pinning by the monotonic clock.")
      .def_property_readonly(
          "touch_ns", [](const Pinned& self) { return self.memory->touch_ns(); },
          "Duration of the touching; 0 if it is no part by itself.")
      .def_property_readonly(
          "register_ns", [](const Pinned& self) { return self.memory->register_ns(); },
          "Duration of the registration; 0 if it is no part by itself.")
      .def(
          "copy",
          [](const Pinned& self, std::uintptr_t device, size_t offset, size_t bytes, bool to_device,
             std::uintptr_t stream) {
            require_range(self, offset, bytes)
                .copy(device_pointer(device), offset, bytes, kind_of(to_device), stream_of(stream));
          },
          py::arg("device"), py::arg("offset"), py::arg("bytes"), py::arg("to_device"),
          py::arg("stream"), "Enqueue a copy between `device` and the bytes from `offset` on.")
      .def(
          "copy_as_one",
          [](const Pinned& self, std::uintptr_t device, size_t offset, size_t bytes, bool to_device,
             std::uintptr_t stream) {
            const cudaError_t status = require_range(self, offset, bytes)
                                           .copy_as_one(device_pointer(device), offset, bytes,
                                                        kind_of(to_device), stream_of(stream));
            cudaGetLastError();
            return static_cast<int>(status);
          },
          py::arg("device"), py::arg("offset"), py::arg("bytes"), py::arg("to_device"),
          py::arg("stream"), "The same by one copy; returns CUDA's status, 0 for success.")
      .def(
          "copy_lines",
          [](const Pinned& self, std::uintptr_t device, size_t width, size_t pitch,
             std::uintptr_t stream) {
            require_range(self, 0, 0)
                .copy_lines(device_pointer(device), width, pitch, stream_of(stream));
          },
          py::arg("device"), py::arg("width"), py::arg("pitch"), py::arg("stream"),
          "Enqueue copies of the first `width` bytes of every `pitch` bytes to `device`, packed.")
      .def(
          "unpin",
          [](Pinned& self) {
            const int64_t started = now_ns();
            {
              const py::gil_scoped_release release;
              check(self.memory->unpin(), "unpin");
            }
            return py::make_tuple(started, now_ns());
          },
          "Unpin the memory and return it to the system; returns begin and end in ns.");
  py::class_<Neighbour>(m, "Neighbour", py::module_local())
      .def(py::init<std::string>(), py::arg("calls"), py::call_guard<py::gil_scoped_release>(),
           "Start a thread that makes these calls: copy, launch, malloc or info.")
      .def(
          "stop",
          [](Neighbour& self) {
            std::vector<int64_t> times;
            {
              const py::gil_scoped_release release;
              times = self.stop();
            }
            return py::array_t<int64_t>({times.size() / 2, size_t{2}}, times.data());
          },
          "End the thread; returns begin and end of each call in ns, int64 [calls, 2].");
}
