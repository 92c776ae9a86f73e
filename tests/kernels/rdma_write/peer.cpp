// Server or client as a program, for sanitizers.
//
//   rdma_peer server PROVIDER DEVICES              prints its address, serves until BYE
//   rdma_peer profiled PROVIDER DEVICES            the same with every call timed
//   rdma_peer client PROVIDER DEVICES ADDRESS      three fills, all bytes checked
#include <cstdio>
#include <cstdlib>

#include "client.h"

namespace {

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16));
  }
  return bytes;
}

int serve(const Setup& setup) {
  Server server(setup);
  for (const unsigned char byte : server.address()) {
    std::printf("%02x", byte);
  }
  std::printf("\n");
  std::fflush(stdout);
  server.accept();
  while (server.serve()) {
  }
  return 0;
}

int ask(const Setup& setup, const std::string& address) {
  constexpr uint64_t kPages = 40000;  // enough for progress to be shown
  Client client(setup, from_hex(address), setup.cores.size(), 2, 8, kPages);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string wrong = client.fill(seed);
    if (!wrong.empty()) {
      std::fprintf(stderr, "%s\n", wrong.c_str());
      return 1;
    }
  }
  client.bye();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<int> cores(std::strtoul(argv[3], nullptr, 10), sched_getcpu());
    const bool profiles = std::string(argv[1]) == "profiled";
    const Setup setup{argv[2], cores, 20, 20, true, profiles};
    return argc == 4 ? serve(setup) : ask(setup, argv[4]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
