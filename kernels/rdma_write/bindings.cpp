// Python's way in, the same for every variant: a server, or a client of one. While they wait, other
// Python threads run. RuntimeError carries what was not as agreed, and libfabric's own message.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "client.h"

namespace py = pybind11;

PYBIND11_MODULE(variant, m) {
  py::register_exception<ProviderUnavailable>(m, "ProviderUnavailable", PyExc_RuntimeError);
  m.def(
      "prepare", [](const std::string& provider) { find_provider(provider); }, py::arg("provider"),
      "Let libfabric look for this provider once, which takes long; ProviderUnavailable.");
  using Free = py::call_guard<py::gil_scoped_release>;
  py::class_<Setup>(m, "Setup", py::module_local())
      .def(py::init([](std::string provider, std::vector<int> cores, double timeout_s,
                       double idle_s, bool shows_progress, bool profiles) {
             return Setup{std::move(provider), std::move(cores), timeout_s, idle_s,
                          shows_progress,      profiles};
           }),
           py::arg("provider"), py::arg("cores"), py::arg("timeout_s"), py::arg("idle_s"),
           py::arg("shows_progress") = false, py::arg("profiles") = false,
           "Provider; a core for each device; seconds without a completion, or without a message, "
           "after which a wait is an error; whether calls of the provider are timed.");
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
          "Serve one request: (writes, seconds, parts in seconds a write), or None where the "
          "client "
          "says goodbye.");
  py::class_<Client>(m, "Client", py::module_local())
      .def(py::init<Setup, std::string, size_t, size_t, uint64_t, uint64_t, bool>(),
           py::arg("setup"), py::arg("server"), py::arg("devices"), py::arg("endpoints"),
           py::arg("page_bytes"), py::arg("pages"), py::arg("connects") = true, Free(),
           "Connect to the server at this address (bytes); without `connects`, only get ready to.")
      .def("fill", &Client::fill, py::arg("seed"), Free(),
           "Ask for one fill and check every byte; says what is wrong, or nothing.")
      .def("send", &Client::send, py::arg("message"), Free(), "Send any bytes.")
      .def("bye", &Client::bye, Free());
}
