// Python bindings of every variant: a server, and its client. Waits release the GIL. RuntimeError
// carries protocol errors and libfabric's message.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "client.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  py::register_exception<ProviderUnavailable>(m, "ProviderUnavailable", PyExc_RuntimeError);
  m.def(
      "prepare", [](const std::string& provider) { find_provider(provider); }, py::arg("provider"),
      "Look up this provider, which is slow the first time; ProviderUnavailable.");
  using Free = py::call_guard<py::gil_scoped_release>;
  py::class_<Setup>(m, "Setup", py::module_local())
      .def(py::init([](std::string provider, std::vector<int> cores, double timeout_s,
                       double idle_s, bool shows_progress, bool profiles) {
             return Setup{std::move(provider), std::move(cores), timeout_s, idle_s,
                          shows_progress,      profiles};
           }),
           py::arg("provider"), py::arg("cores"), py::arg("timeout_s"), py::arg("idle_s"),
           py::arg("shows_progress") = false, py::arg("profiles") = false,
           "Provider; one core per device; seconds without a completion, or without a message, "
           "after "
           "which a wait fails; whether to report progress, and to time calls of the provider.");
  py::class_<Server>(m, "Server", py::module_local())
      .def(py::init<Setup>(), py::arg("setup"))
      .def("address", [](const Server& server) { return py::bytes(server.address()); })
      .def("accept", &Server::accept, Free(), "Wait for a client to connect.")
      .def(
          "serve",
          [](Server& server) -> py::object {
            std::optional<Written> written;
            {
              const py::gil_scoped_release release;
              written = server.serve();
            }
            if (!written) {
              return py::none();
            }
            return py::make_tuple(written->writes, written->seconds, written->parts);
          },
          "Serve one request: (writes, seconds, parts in seconds per write), or None when the "
          "client "
          "disconnects.");
  py::class_<Client>(m, "Client", py::module_local())
      .def(py::init<Setup, std::string, size_t, size_t, uint64_t, uint64_t, bool>(),
           py::arg("setup"), py::arg("server"), py::arg("devices"), py::arg("endpoints"),
           py::arg("page_bytes"), py::arg("pages"), py::arg("connects") = true, Free(),
           "Connect to the server at this address (bytes); without `connects`, send nothing yet.")
      .def("fill", &Client::fill, py::arg("seed"), Free(),
           "Request one fill and check every byte; returns the first error, or an empty string.")
      .def("send", &Client::send, py::arg("message"), Free(), "Send a message of any bytes.")
      .def("bye", &Client::bye, Free());
}
