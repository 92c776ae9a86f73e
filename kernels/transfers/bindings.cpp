// The Python module of every variant: bind() checks its arguments, launch() only moves. Addresses
// and streams are integers; the caller owns the memory, which outlives the method.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <iterator>

#include "transfer.h"

namespace py = pybind11;

namespace {

// By the value of Memory.
constexpr const char* kMemoryNames[] = {"pageable",   "pinned",          "write_combined",
                                        "registered", "registered_huge", "managed"};
static_assert(std::size(kMemoryNames) == static_cast<size_t>(Memory::kManaged) + 1);

void require(bool holds, const char* field, const char* expected, int64_t got) {
  if (!holds) {
    throw py::value_error(std::string(field) + ": expected " + expected + ", got " +
                          std::to_string(got));
  }
}

std::unique_ptr<Method> bind(std::uintptr_t host, std::uintptr_t device, std::uintptr_t landing,
                             int64_t size, int64_t pitch, int64_t count, bool to_device,
                             int streams, int blocks) {
  require(host != 0, "host", "an address", 0);
  require(device != 0, "device", "an address", 0);
  require(size > 0, "size", "at least 1", size);
  require(count > 0, "count", "at least 1", count);
  require(pitch >= size, "pitch", "at least the size", pitch);
  require(streams >= 0, "streams", "at least 0", streams);
  require(blocks >= 0, "blocks", "at least 0", blocks);
  return method({reinterpret_cast<uint8_t*>(host), reinterpret_cast<uint8_t*>(device),
                 reinterpret_cast<uint8_t*>(landing), size, pitch, count, to_device, streams,
                 blocks});
}

}  // namespace

PYBIND11_MODULE(variant, m) {
  m.attr("memory") = kMemoryNames[static_cast<size_t>(kMemory)];
  py::class_<Method>(m, "Method", py::module_local())
      .def(
          "launch",
          [](Method& self, std::uintptr_t stream) {
            self.launch(reinterpret_cast<cudaStream_t>(stream));
          },
          py::arg("stream"), "Move the pieces in the order of a stream, given as an address.")
      .def(
          "samples",
          [](Method& self, std::uintptr_t stream) {
            return self.samples(reinterpret_cast<cudaStream_t>(stream));
          },
          py::arg("stream"), "Samples that only this method takes, in seconds, by metric.");
  m.def("bind", &bind, py::arg("host"), py::arg("device"), py::arg("landing") = 0, py::kw_only(),
        py::arg("size"), py::arg("pitch"), py::arg("count") = 1, py::arg("to_device") = true,
        py::arg("streams") = 0, py::arg("blocks") = 0,
        R"(Bind the variant's method to `count` pieces of `size` bytes.

host: address of the first piece in host memory; pieces are `pitch` bytes apart
device: address of the first piece in device memory; pieces are packed
landing: address of host memory in which a round trip ends, with the same pitch; 0 for none
to_device: copy from host to device, else from device to host
streams: number of streams of a round trip
blocks: thread blocks of a copy by the SMs; 0 for enough to keep the GPU busy

ValueError names the argument that is out of range or that the variant cannot handle.)");
}
