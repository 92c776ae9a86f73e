// The server, which writes: waits for a client, then serves its requests one after the other.
// peer.py runs it in a separate process, through bindings.cpp.
#pragma once

#include <deque>
#include <optional>

#include "pattern.h"
#include "transfer.h"

// Default for variants that do not define it.
[[gnu::weak]] bool counts_writes() { return false; }

// Settings of a server or a client.
struct Setup {
  std::string provider;
  std::vector<int> cores;  // [devices]
  double timeout_s = 10;   // without any completion
  double idle_s = 60;      // without any message
  bool shows_progress = false;
  bool profiles = false;  // makes calls slower, so never for a measured time
};

// Result of one request.
struct Written {
  uint64_t writes;
  double seconds;                       // from the first post to the client's RECEIVED
  std::map<std::string, double> parts;  // seconds per write, by metric; empty without a profile
};

// Receives messages on a separate endpoint, apart from the completions of writes. For one thread.
class Inbox {
 public:
  explicit Inbox(const std::string& provider) : endpoint_(provider) {
    for (Slot& slot : slots_) {
      slot.text.resize(kMaxMessageBytes);
      slot.region = endpoint_.register_memory(slot.text.data(), slot.text.size(),
                                              1 + (&slot - slots_.data()), FI_RECV);
      post(slot);
    }
  }

  std::string address() const { return endpoint_.address(); }

  // The next message; throws TimedOut if none arrives. With `naps` the thread sleeps between polls,
  // otherwise it spins.
  std::string receive(const Limits& limits, const std::string& from, bool naps) {
    Watch watch(limits, from);
    while (true) {
      const auto completions = endpoint_.read_completions();
      watch.found(!completions.empty());
      for (const fi_cq_data_entry& entry : completions) {
        Slot& slot = *static_cast<Slot*>(entry.op_context);
        arrived_.push_back(slot.text.substr(0, entry.len));
        post(slot);
      }
      if (!arrived_.empty()) {
        std::string first = std::move(arrived_.front());
        arrived_.pop_front();
        return first;
      }
      if (naps) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

 private:
  struct Slot {
    fi_context2 context;
    std::string text;
    Region region;
  };

  void post(Slot& slot) {
    check(fi_recv(endpoint_.ep(), slot.text.data(), slot.text.size(), slot.region.descriptor,
                  FI_ADDR_UNSPEC, &slot),
          "fi_recv");
  }

  std::array<Slot, 2> slots_{};
  std::deque<std::string> arrived_;
  Endpoint endpoint_;
};

// For one calling thread. A request starts one thread per device to prepare and write pages.
// Errors: ProtocolError for an invalid message, FabricError, ProviderUnavailable, TimedOut after
// setup.timeout_s without a completion or setup.idle_s without a message.
class Server {
 public:
  explicit Server(Setup setup) : setup_(std::move(setup)), inbox_(setup_.provider) {}

  // Address for a client's constructor.
  std::string address() const { return inbox_.address(); }

  // Waits for CONNECT and makes as many devices as the client has.
  void accept() {
    const std::string text = receive("waiting for a client", setup_.idle_s, true);
    connect_ = Connect::decode(text);
    if (connect_.devices > setup_.cores.size()) {
      throw ProtocolError("CONNECT devices",
                          "at most " + std::to_string(setup_.cores.size()) + ", a core each",
                          std::to_string(connect_.devices));
    }
    for (size_t i = 0; i < connect_.devices; ++i) {
      Device device{i, {}, {}};
      for (size_t j = 0; j < connect_.endpoints; ++j) {
        Rail rail{std::make_unique<Endpoint>(setup_.provider, counts_writes())};
        const size_t k = i * connect_.endpoints + j;
        rail.peer = rail.endpoint->resolve(connect_.addresses[k]);
        rail.remote = connect_.regions[k];
        if (setup_.profiles) {
          rail.endpoint->begin_profile();
        }
        device.rails.push_back(std::move(rail));
      }
      devices_.push_back(std::move(device));
    }
  }

  // Serves one RANDOM_FILL of the connected client; returns nothing after its BYE.
  std::optional<Written> serve() {
    const std::string text = receive("waiting for a request", setup_.idle_s, true);
    if (Reader(text).type() == MessageType::kBye) {
      return std::nullopt;
    }
    const RandomFill fill = RandomFill::decode(text, connect_);
    Limits limits{setup_.timeout_s};
    in_threads(devices_.size(), limits, [&](size_t i) { prepare(devices_[i], fill); });
    warm_up(limits, fill);
    uint64_t writes = 0;
    for (const Device& device : devices_) {
      writes += device.writes();
    }
    const Progress progress(setup_.shows_progress, writes, fill.page_bytes);
    Transfer transfer{devices_, writes, limits, progress, setup_.cores};
    const std::vector<Profile*> profiles = begin_profiles();
    const auto start = std::chrono::steady_clock::now();
    const uint64_t start_ticks = __rdtsc();
    if (writes > 0) {  // 0 if every page is the last one of its rail
      write_pages(transfer);
    }
    const Parts parts = profiles.empty() ? Parts{} : Profile::parts(profiles);
    write_last(limits, fill);
    const std::string answer = receive("waiting for RECEIVED", setup_.timeout_s, false);
    const auto ticks = static_cast<double>(__rdtsc() - start_ticks);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    Reader reader(answer);
    reader.require(MessageType::kReceived);
    reader.require_end();
    for (Device& device : devices_) {
      writes += device.rails.size();
    }
    progress.report(writes, writes);
    Written written{writes, elapsed.count(), {}};
    if (!profiles.empty()) {
      written.parts = parts.per_write(ticks, elapsed.count(), writes);
    }
    return written;
  }

 private:
  std::string receive(const std::string& what, double seconds, bool naps) {
    const Limits limits{seconds};
    return inbox_.receive(limits, what, naps);
  }

  std::vector<Profile*> begin_profiles() const {
    std::vector<Profile*> profiles;
    for (const Device& device : devices_) {
      for (const Rail& rail : device.rails) {
        if (Profile* profile = rail.endpoint->profile()) {
          profile->reset();
          profiles.push_back(profile);
        }
      }
    }
    return profiles;
  }

  // Fills the device's memory: its pages, then one with other bytes for the warm-up.
  static void prepare(Device& device, const RandomFill& fill) {
    const size_t bytes = fill.destinations.size() * fill.page_bytes;
    for (Rail& rail : device.rails) {
      rail.source = {};
    }
    device.memory.resize(bytes + fill.page_bytes);
    write_pattern(device.memory.data(), device.memory.size(), fill.seed, device.index, 0);
    for (size_t i = 0; i < device.rails.size(); ++i) {
      device.rails[i].source = device.rails[i].endpoint->register_memory(
          device.memory.data(), device.memory.size(), 1 + i, FI_WRITE);
    }
    device.fill = &fill;
    device.page = 0;
  }

  // Writes one page per rail, so that connections and mappings exist before the clock starts. A
  // page of the request overwrites it.
  void warm_up(const Limits& limits, const RandomFill& fill) {
    for (Device& device : devices_) {
      for (size_t i = 0; i < device.rails.size(); ++i) {
        Write write = device.write_of(i);
        write.source = device.memory.data() + fill.destinations.size() * fill.page_bytes;
        write_alone(device, write, limits, "warming up", nullptr);
      }
    }
  }

  // Immediate data must not overtake a write, so this one follows the completion of all others.
  void write_last(const Limits& limits, const RandomFill& fill) {
    for (Device& device : devices_) {
      for (uint64_t i = device.writes(); i < fill.destinations.size(); ++i) {
        write_alone(device, device.write_of(i), limits, "writing the last page", &fill.context);
      }
    }
  }

  static void write_alone(Device& device, const Write& write, const Limits& limits,
                          const std::string& what, const uint64_t* immediate) {
    Watch watch(limits, what + " of device " + std::to_string(device.index));
    const auto& [endpoint, peer, remote, source] = device.rails[write.rail];
    fi_context2 context{};
    auto post = [&, &endpoint = endpoint, &peer = peer, &remote = remote, &source = source] {
      const size_t bytes = device.fill->page_bytes;
      return immediate ? fi_writedata(endpoint->ep(), write.source, bytes, source.descriptor,
                                      *immediate, peer, write.remote_address, remote.key, &context)
                       : fi_write(endpoint->ep(), write.source, bytes, source.descriptor, peer,
                                  write.remote_address, remote.key, &context);
    };
    ssize_t status = post();
    while (status == -FI_EAGAIN) {
      endpoint->read_completions();
      watch.found(false);
      status = post();
    }
    check(status, immediate ? "fi_writedata" : "fi_write");
    while (endpoint->read_completions().empty()) {
      watch.found(false);
    }
  }

  Setup setup_;
  Inbox inbox_;
  Connect connect_;
  std::vector<Device> devices_;
};
