// The same as chunks, with the time of each registration and unregistration. The module `timed` in
// the same file returns them.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "operation.h"
#include "timed_calls.h"

namespace py = pybind11;

namespace {

// Calls of the last pinning and of its end, in order. One thread pins and unpins.
std::vector<TimedCall> registrations;
std::vector<TimedCall> unregistrations;

// int64 [calls, 4], in the order of TimedCall's members.
py::array_t<int64_t> as_array(const std::vector<TimedCall>& calls) {
  static_assert(sizeof(TimedCall) == 4 * sizeof(int64_t));
  return py::array_t<int64_t>({calls.size(), size_t{4}},
                              reinterpret_cast<const int64_t*>(calls.data()));
}

}  // namespace

void pin(const Request& request, PinnedMemory& memory) {
  registrations.clear();
  unregistrations.clear();
  memory.map(MADV_HUGEPAGE);
  memory.touch(request.threads);
  memory.place(memory.data(), request.chunk_bytes);
  for (size_t offset = 0; offset < memory.bytes(); offset += request.chunk_bytes) {
    char* begin = memory.data() + offset;
    const size_t size = std::min(request.chunk_bytes, memory.bytes() - offset);
    registrations.push_back(timed([&] {
      check(cudaHostRegister(begin, size, cudaHostRegisterDefault), "cudaHostRegister");
    }));
    memory.undo_later([begin] {
      cudaError_t status = cudaSuccess;
      unregistrations.push_back(timed([&] { status = cudaHostUnregister(begin); }));
      return status;
    });
  }
}

PYBIND11_MODULE(timed, m) {
  m.doc() = "Times in ns of calls: begin, end, time on a core, time in the queue of a core or -1.";
  m.def(
      "registrations", [] { return as_array(registrations); },
      "Registrations of the last pinning, int64 [chunks, 4].");
  m.def(
      "unregistrations", [] { return as_array(unregistrations); },
      "Unregistrations of the last pinning, int64 [chunks, 4].");
  py::class_<TimedNeighbour>(m, "TimedNeighbour", py::module_local())
      .def(py::init<>(), py::call_guard<py::gil_scoped_release>(),
           "Start a thread that repeats cudaMalloc and cudaFree.")
      .def(
          "stop",
          [](TimedNeighbour& self) {
            const std::vector<TimedCall>* calls = nullptr;
            {
              const py::gil_scoped_release release;
              calls = &self.stop();
            }
            return as_array(*calls);
          },
          "End the thread; returns its calls, int64 [calls, 4].");
}
