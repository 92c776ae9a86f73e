// The Python bindings of every variant: an allocator over a source, and tapes replayed on it.
// Called by workload.py, tables.py and tests.
//
// An allocator keeps its source alive, a runner keeps its allocator alive. Only replays release the
// GIL. Errors: OutOfMemory is a MemoryError, InvalidPointer a ValueError; ValueError for an invalid
// tape or an unsupported limit, RuntimeError with CUDA's message.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "driver_source.h"
#include "runner.h"
#include "state_check.h"

namespace py = pybind11;

namespace {

using TapeArray = py::array_t<uint64_t, py::array::c_style | py::array::forcecast>;

uintptr_t address(const void* ptr) { return reinterpret_cast<uintptr_t>(ptr); }
void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

const char* name_of(BlockState state) {
  constexpr const char* kNames[] = {"free", "cached", "used", "waiting"};
  return kNames[size_t(state)];
}

py::list to_list(const std::vector<BlockInfo>& blocks) {
  py::list list;
  for (const BlockInfo& block : blocks) {
    py::dict entry;
    entry["segment"] = block.segment;
    entry["ptr"] = block.ptr;
    entry["size"] = block.size;
    entry["requested"] = block.requested;
    entry["state"] = name_of(block.state);
    entry["stream"] = block.stream;
    list.append(entry);
  }
  return list;
}

py::dict to_dict(const Statistics& statistics) {
  py::dict all;
  all["requested"] = statistics.requested;
  all["active"] = statistics.active;
  all["peak_active"] = statistics.peak_active;
  all["reserved"] = statistics.reserved;
  all["peak_reserved"] = statistics.peak_reserved;
  all["driver_calls"] = statistics.driver_calls;
  all["allocations"] = statistics.allocations;
  all["frees"] = statistics.frees;
  return all;
}

Tape to_tape(const TapeArray& rows) {
  if (rows.ndim() != 2 || rows.shape(1) != 4) {
    throw py::value_error("tape: expected an array of shape (operations, 4), got another");
  }
  const auto view = rows.unchecked<2>();
  Tape tape;
  tape.reserve(size_t(view.shape(0)));
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    tape.push_back({OpKind(view(i, 0)), uint32_t(view(i, 1)), view(i, 2), view(i, 3)});
  }
  return tape;
}

// Writes both ends of an allocation on its stream, to detect memory that does not exist.
void write_ends(void* ptr, uint64_t bytes, Stream stream) {
  constexpr uint64_t kEnd = 256;
  const uint64_t size = std::min(bytes, kEnd);
  const auto on = reinterpret_cast<cudaStream_t>(stream);
  check(cudaMemsetAsync(ptr, 0xA5, size, on), "first bytes");
  check(cudaMemsetAsync(static_cast<char*>(ptr) + bytes - size, 0xA5, size, on), "last bytes");
}

void write_all(void* ptr, uint64_t bytes, Stream stream) {
  check(cudaMemsetAsync(ptr, 0x5A, bytes, reinterpret_cast<cudaStream_t>(stream)), "write");
}

void write_nothing(void* /*ptr*/, uint64_t /*bytes*/, Stream /*stream*/) {}

}  // namespace

PYBIND11_MODULE(variant, m) {
  py::register_local_exception<OutOfMemory>(m, "OutOfMemory", PyExc_MemoryError);
  py::register_local_exception<InvalidPointer>(m, "InvalidPointer", PyExc_ValueError);
  py::register_local_exception<Broken>(m, "Broken", PyExc_AssertionError);

  py::class_<MemorySource>(m, "MemorySource", py::module_local())
      .def(
          "counts",
          [](const MemorySource& source, int device) {
            const SourceCounts counts = source.counts(device);
            py::dict all;
            all["reserved"] = counts.reserved;
            all["peak_reserved"] = counts.peak_reserved;
            all["allocations"] = counts.allocations;
            all["frees"] = counts.frees;
            all["event_records"] = counts.event_records;
            all["event_queries"] = counts.event_queries;
            all["event_waits"] = counts.event_waits;
            return all;
          },
          py::arg("device") = 0);
  py::class_<DriverSource, MemorySource>(m, "DriverSource", py::module_local(), "The real driver.")
      .def(py::init<>());
  py::class_<HostSource, MemorySource>(m, "HostSource", py::module_local(),
                                       "Addresses without memory, on devices of `capacity` bytes.")
      .def(py::init<size_t>(), py::arg("capacity"))
      .def("fail_next", &HostSource::fail_next, py::arg("device"), py::arg("count"))
      .def("enqueue", &HostSource::enqueue, py::arg("device"), py::arg("stream"))
      .def("complete", &HostSource::complete, py::arg("device"), py::arg("stream"),
           py::arg("count"));

  py::class_<Allocator>(m, "Allocator", py::module_local(),
                        "The variant's allocator over a source. Pointers are integers.")
      .def(py::init([](MemorySource& source) { return make_allocator(source); }), py::arg("source"),
           py::keep_alive<1, 2>())
      .def(
          "allocate",
          [](Allocator& allocator, size_t bytes, int device, Stream stream) {
            return address(allocator.allocate(bytes, {device, stream}));
          },
          py::arg("bytes"), py::arg("device") = 0, py::arg("stream") = 0)
      .def(
          "free",
          [](Allocator& allocator, uintptr_t ptr, int device, Stream stream) {
            allocator.deallocate(pointer(ptr), {device, stream});
          },
          py::arg("ptr"), py::arg("device") = 0, py::arg("stream") = 0)
      .def(
          "free_ticket",
          [](Allocator& allocator, uintptr_t ptr, uint64_t ticket, int device) {
            allocator.deallocate_ticket(pointer(ptr), {device, 0}, ticket);
          },
          py::arg("ptr"), py::arg("ticket"), py::arg("device") = 0)
      .def(
          "ticket",
          [](Allocator& allocator, uintptr_t ptr, int device) {
            return allocator.ticket(pointer(ptr), device);
          },
          py::arg("ptr"), py::arg("device") = 0)
      .def(
          "record_stream",
          [](Allocator& allocator, uintptr_t ptr, Stream stream, int device) {
            allocator.record_stream(pointer(ptr), {device, stream});
          },
          py::arg("ptr"), py::arg("stream"), py::arg("device") = 0)
      .def_property_readonly(
          "address", [](const Allocator& allocator) { return address(&allocator); },
          "Address of the Allocator, for other C++ code.")
      .def("trim", &Allocator::trim, py::arg("device") = 0, py::arg("keep") = 0)
      .def("set_limit", &Allocator::set_limit, py::arg("device"), py::arg("bytes"))
      .def("reset_statistics", &Allocator::reset_statistics, py::arg("device") = 0)
      .def(
          "statistics",
          [](Allocator& allocator, int device) { return to_dict(allocator.statistics(device)); },
          py::arg("device") = 0)
      .def(
          "snapshot",
          [](Allocator& allocator, int device) { return to_list(allocator.snapshot(device)); },
          py::arg("device") = 0);

  py::class_<Runner>(m, "Runner", py::module_local(),
                     R"(Tapes replayed on an allocator, one a thread.

tapes: arrays uint64 [operations, 4] of (kind, slot, bytes, stream): kind 0 allocates into the slot,
1 frees it, 2 records a stream as a user, 3 writes that many bytes of it on a stream, and only
`on_gpu`; streams are indices into `streams`. ValueError names the first invalid operation.)")
      .def(py::init([](Allocator& allocator, const std::vector<TapeArray>& tapes,
                       const std::vector<Stream>& streams, int device, bool on_gpu) {
             std::vector<Tape> copies;
             for (const TapeArray& tape : tapes) {
               copies.push_back(to_tape(tape));
             }
             return std::make_unique<Runner>(allocator, std::move(copies), streams, device,
                                             on_gpu ? write_all : write_nothing);
           }),
           py::arg("allocator"), py::arg("tapes"), py::arg("streams"), py::arg("device") = 0,
           py::arg("on_gpu") = false, py::keep_alive<1, 2>())
      .def_property_readonly("operations", &Runner::operations, "Operations of the longest tape.")
      .def("run_after_other_work", &Runner::run_after_other_work,
           py::call_guard<py::gil_scoped_release>(),
           "Seconds of a replay of the only tape, after other work as between steps of a program.")
      .def("run", &Runner::run, py::arg("times"), py::call_guard<py::gil_scoped_release>(),
           "Seconds of `times` replays, from the start of all threads to the end of the last.")
      .def(
          "check",
          [](Runner& runner, bool on_gpu) {
            const Checked checked = [&] {
              const py::gil_scoped_release release;
              return runner.check([&](void* ptr, uint64_t bytes, Stream stream) {
                if (on_gpu) {
                  write_ends(ptr, bytes, stream);
                }
              });
            }();
            if (on_gpu) {
              check(cudaDeviceSynchronize(), "written memory");
            }
            return checked.peak_requested;
          },
          py::arg("on_gpu"),
          "Replay once and check every address; returns the peak of requested bytes. "
          "RuntimeError names the first operation that was given an invalid block.")
      .def(
          "latencies",
          [](Runner& runner, int times) {
            const Latencies all = [&] {
              const py::gil_scoped_release release;
              return runner.latencies(times);
            }();
            return py::make_tuple(all.p50_s, all.p99_s, all.p999_s, all.max_s);
          },
          py::arg("times"),
          "Seconds of single operations in `times` replays: p50, p99, p99.9 and the longest.");

  py::class_<StateCheck>(m, "StateCheck", py::module_local(),
                         "Actions on this variant over a HostSource, all checked after each one.")
      .def(py::init<size_t>(), py::arg("capacity"))
      .def("allocate", &StateCheck::allocate, py::arg("bytes"), py::arg("stream"))
      .def("free", &StateCheck::free, py::arg("index"), py::arg("with_ticket"))
      .def("record", &StateCheck::record, py::arg("index"), py::arg("stream"))
      .def("complete", &StateCheck::complete, py::arg("stream"), py::arg("count"))
      .def("trim", &StateCheck::trim, py::arg("keep"))
      .def("set_limit", &StateCheck::set_limit, py::arg("bytes"))
      .def("fail_driver", &StateCheck::fail_driver, py::arg("count"))
      .def("misuse", &StateCheck::misuse, py::arg("index"))
      .def("burst", &StateCheck::burst, py::arg("seed"), py::arg("count"), py::arg("max_log2"))
      .def("drain", &StateCheck::drain)
      .def("check", &StateCheck::check)
      .def_property_readonly("live", &StateCheck::live)
      .def_property_readonly("operations", &StateCheck::operations);
}
