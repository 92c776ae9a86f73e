// The client, whose memory is written: requests random fills and checks every byte. peer.py runs it
// in a separate process, through bindings.cpp.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "pattern.h"
#include "server.h"

// The client's memory of one device. The server may write all pages but the first and the last,
// which are guards. Some pages in between are not the destination of any write.
struct Target {
  std::vector<uint8_t> memory;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<Region> regions;
};

// For one calling thread. A fill starts one thread per device, pinned to its core in `setup`.
// Errors: ProtocolError for arguments or answers out of range, FabricError for a failed call of the
// provider, ProviderUnavailable, TimedOut after setup.timeout_s without a completion.
class Client {
 public:
  // Connects to the server at this address (Endpoint::address) with `devices`, each of which has
  // `endpoints` and memory for more than `pages` pages. Without `connects` it sends nothing yet.
  Client(Setup setup, const std::string& server, size_t devices, size_t endpoints,
         uint64_t page_bytes, uint64_t pages, bool connects = true)
      : setup_(std::move(setup)),
        page_bytes_(page_bytes),
        pages_(pages),
        slots_(pages + pages / 4 + 1),
        outbox_(setup_.provider) {
    require_between("devices", devices, 1, std::min<uint64_t>(kMaxDevices, setup_.cores.size()));
    require_between("endpoints", endpoints, 1, kMaxEndpoints);
    require_between("page_bytes", page_bytes, 8, kMaxPageBytes);
    require_between("pages", pages, endpoints, kMaxMessageBytes / sizeof(uint32_t) - 64);
    require_between("buffer bytes", (slots_ + 2) * page_bytes, 1, kMaxBufferBytes);
    server_ = outbox_.resolve(server);
    message_.reserve(kMaxMessageBytes);
    Connect connect{devices, endpoints, {}, {}};
    targets_.resize(devices);
    for (Target& target : targets_) {
      target.memory.resize((slots_ + 2) * page_bytes_);
      for (size_t i = 0; i < endpoints; ++i) {
        target.endpoints.push_back(std::make_unique<Endpoint>(setup_.provider));
        target.regions.push_back(target.endpoints.back()->register_memory(
            target.memory.data() + page_bytes_, slots_ * page_bytes_, 1 + i, FI_REMOTE_WRITE));
        connect.addresses.push_back(target.endpoints.back()->address());
        const Region& region = target.regions.back();
        connect.regions.push_back({region.address, slots_ * page_bytes_, region.key});
      }
    }
    if (connects) {
      send(connect.encode());
    }
  }

  // Requests one fill and waits for it. Returns the first wrong byte of a device, or nothing.
  std::string fill(uint64_t seed) {
    RandomFill fill;
    fill.context = seed % UINT32_MAX;
    fill.seed = seed;
    fill.page_bytes = page_bytes_;
    fill.destinations = draw(seed);
    Limits limits{setup_.timeout_s};
    in_threads(targets_.size(), limits, [&](size_t i) {
      // New bytes everywhere, so that a lost write is detected.
      Target& target = targets_[i];
      write_pattern(target.memory.data(), target.memory.size(), ~seed, i, 0);
    });
    send(fill.encode());
    in_threads(targets_.size(), limits, [&](size_t i) {
      pin_to(setup_.cores[i]);
      wait_for_all(targets_[i], fill, limits);
    });
    send(Writer(MessageType::kReceived).text());
    std::vector<std::string> wrong(targets_.size());
    in_threads(targets_.size(), limits, [&](size_t i) { wrong[i] = verify(i, fill); });
    for (const std::string& text : wrong) {
      if (!text.empty()) {
        return text;
      }
    }
    return "";
  }

  // Ends the session of the server.
  void bye() { send(Writer(MessageType::kBye).text()); }

  // Sends a message of at most kMaxMessageBytes and waits until it is out. Tests send invalid ones.
  void send(const std::string& text) {
    message_.assign(text);
    const Region region = outbox_.register_memory(message_.data(), message_.size(), 1, FI_SEND);
    const Limits limits{setup_.timeout_s};
    Watch watch(limits, "sending to the server");
    fi_context2 context{};
    ssize_t status = 0;
    while ((status = fi_send(outbox_.ep(), message_.data(), message_.size(), region.descriptor,
                             server_, &context)) == -FI_EAGAIN) {
      outbox_.read_completions();
      watch.found(false);
    }
    check(status, "fi_send");
    while (outbox_.read_completions().empty()) {
      watch.found(false);
    }
  }

 private:
  // Distinct destinations in random order.
  std::vector<uint32_t> draw(uint64_t seed) const {
    std::vector<uint32_t> slots(slots_);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), std::mt19937_64(seed));
    slots.resize(pages_);
    return slots;
  }

  static void wait_for_all(Target& target, const RandomFill& fill, const Limits& limits) {
    Watch watch(limits, "waiting for immediate data");
    std::vector<bool> has_arrived(target.endpoints.size());
    size_t missing = has_arrived.size();
    while (missing > 0) {
      pause();
      for (size_t i = 0; i < has_arrived.size(); ++i) {
        const auto completions = target.endpoints[i]->read_completions();
        watch.found(!completions.empty());
        for (const fi_cq_data_entry& entry : completions) {
          if (!(entry.flags & FI_REMOTE_CQ_DATA) || entry.data != fill.context || has_arrived[i]) {
            throw ProtocolError("immediate data",
                                std::to_string(fill.context) + ", once an endpoint",
                                std::to_string(entry.data));
          }
          has_arrived[i] = true;
          --missing;
        }
      }
    }
  }

  // Without a network card, a poll moves the data, under a lock that the server's posts also take.
  // Polls without a pause would rarely leave the queue free for a post.
  static void pause() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
    while (std::chrono::steady_clock::now() < until) {
      __builtin_ia32_pause();
    }
  }

  std::string verify(size_t device, const RandomFill& fill) const {
    constexpr uint32_t kNoSource = UINT32_MAX;
    std::vector<uint32_t> source(slots_ + 2, kNoSource);
    for (uint32_t i = 0; i < fill.destinations.size(); ++i) {
      source[fill.destinations[i] + 1] = i;
    }
    const uint64_t words = page_bytes_ / 8;
    for (size_t slot = 0; slot < source.size(); ++slot) {
      const uint8_t* page = targets_[device].memory.data() + slot * page_bytes_;
      const bool is_target = source[slot] != kNoSource;
      const size_t wrong =
          is_target ? first_difference(page, page_bytes_, fill.seed, device, source[slot] * words)
                    : first_difference(page, page_bytes_, ~fill.seed, device, slot * words);
      if (wrong != page_bytes_) {
        return "device " + std::to_string(device) + ", page " + std::to_string(slot) + ", byte " +
               std::to_string(wrong) +
               (is_target ? ": not what was written" : ": changed, though nobody's destination");
      }
    }
    return "";
  }

  Setup setup_;
  uint64_t page_bytes_;
  uint64_t pages_;
  uint64_t slots_;
  Endpoint outbox_;
  fi_addr_t server_ = FI_ADDR_UNSPEC;
  std::string message_;
  std::vector<Target> targets_;
};
