// The Python module of every variant: bind() checks its arguments, launch() only moves. Addresses
// and streams are integers; the caller owns the memory, which outlives the method.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "transfer.h"

namespace py = pybind11;

namespace {

const char* name_of(Memory memory) {
  switch (memory) {
    case Memory::kPageable:
      return "pageable";
    case Memory::kPinned:
      return "pinned";
    case Memory::kWriteCombined:
      return "write_combined";
    case Memory::kRegistered:
      return "registered";
    case Memory::kRegisteredHuge:
      return "registered_huge";
    case Memory::kManaged:
      return "managed";
  }
  throw std::logic_error("memory: a kind without a name");
}

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
  m.attr("memory") = name_of(kMemory);
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
          py::arg("stream"), "Samples that only this method can take, in s, by metric.");
  m.def("bind", &bind, py::arg("host"), py::arg("device"), py::arg("landing") = 0, py::kw_only(),
        py::arg("size"), py::arg("pitch"), py::arg("count") = 1, py::arg("to_device") = true,
        py::arg("streams") = 0, py::arg("blocks") = 0,
        R"(Make the variant's way of moving `count` pieces of `size` bytes.

host: address of the first piece in host memory; pieces are `pitch` bytes apart
device: address of the first piece in device memory; pieces are packed
landing: where a round trip brings the pieces, as far apart as on the host; 0 where there is none
to_device: from host to device, else back
streams: over which a round trip is spread
blocks: of a copy by the SMs; 0 for as many as keep the GPU busy

ValueError names what is out of range, or what the variant cannot move.)");
}
