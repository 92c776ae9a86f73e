// The side that writes: waits for a client, then serves its requests one after the other.
// peer.py calls it through bindings.cpp, in a process of its own.
#pragma once

#include <deque>
#include <optional>

#include "pattern.h"
#include "transfer.h"

// What transfer.h declares, for variants that leave it out.
[[gnu::weak]] bool counts_writes() { return false; }

// How either side runs; times in s.
struct Setup {
  std::string provider;
  std::vector<int> cores;  // one a device
  double timeout_s = 10;   // without any completion
  double idle_s = 60;      // without any message
  bool shows_progress = false;
  bool profiles = false;  // which makes calls longer, so never where time is measured
};

// What serving one request came to.
struct Written {
  uint64_t writes;
  double seconds;  // from the first post until the client has said that it has all
  std::map<std::string, double> parts;  // seconds a write, by metric; empty without a profile
};

// Receives messages on an endpoint of its own, so that none meets the completions of writes. One
// thread.
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

  // The next message; throws TimedOut where none comes. With `naps` the thread sleeps between
  // polls, else it keeps its core.
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

// One thread calls it; a request has a thread of its own for each device while pages are prepared
// and written. Errors: ProtocolError for a message that is not as agreed, FabricError,
// ProviderUnavailable, TimedOut after setup.timeout_s without a completion or setup.idle_s without
// a message.
class Server {
 public:
  explicit Server(Setup setup) : setup_(std::move(setup)), inbox_(setup_.provider) {}

  // What a client's constructor takes.
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

  // Serves one RANDOM_FILL of the client that was accepted; nothing where it says BYE instead.
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
    if (writes > 0) {  // or every page is the last of its rail
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

  // Fills the device's memory: its pages, then one more for the warm-up, which must not be right.
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

  // One page a rail, so that connections and mappings are there before the clock starts. It goes
  // where a page of the request will overwrite it.
  void warm_up(const Limits& limits, const RandomFill& fill) {
    for (Device& device : devices_) {
      for (size_t i = 0; i < device.rails.size(); ++i) {
        Write write = device.write_of(i);
        write.source = device.memory.data() + fill.destinations.size() * fill.page_bytes;
        write_alone(device, write, limits, "warming up", nullptr);
      }
    }
  }

  // Immediate data must not overtake a write, so this is posted when all others are complete.
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
