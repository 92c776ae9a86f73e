// Threads that do anything at any time, all held against a shadow:
// allocator_storm OPERATIONS SEED THREADS
//
// Half of the streams pass: they are destroyed, and come back under the same handle. Ends with 0
// where nothing was wrong, else with 1 and what was expected and what came.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include "shadow.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCapacity = 512 * kMiB;
constexpr size_t kReads = 0, kOwns = 1, kPassing = 2;  // the streams of a thread that pass
constexpr size_t kMaxLive = 40, kMaxGraphs = 3;

// One thread of the program, which keeps the rules of pooled_allocator.h.
class Actor {
 public:
  Actor(Shadow& gpu, const std::vector<Stream>& lasting, uint64_t seed, uint64_t number)
      : gpu_(gpu), lasting_(lasting), number_(number), random_(seed * 1000 + number) {
    for (size_t i = 0; i < kPassing; ++i) {
      passing_.push_back(gpu_.source.create_stream());
    }
  }

  void act() {
    const uint64_t which = random_() % 1000;
    const bool is_crowded = live_.size() >= kMaxLive;
    const std::pair<uint64_t, void (Actor::*)()> actions[] = {
        {is_crowded ? 150 : 400, &Actor::allocate},
        {620, &Actor::free},
        {780, &Actor::use},
        {920, &Actor::complete},
        // most of the time nobody captures
        {captured_ == kNone ? 924 : 950, &Actor::toggle_capture},
        {950, &Actor::destroy_graph},
        {965, &Actor::replace_stream},
        {975, &Actor::trim},
        {980, &Actor::set_limit},
    };
    for (const auto& [end, action] : actions) {
      if (which < end) {
        (this->*action)();
        return;
      }
    }
    be_nasty(which);
  }

  // Ends what only this thread can end.
  void leave() {
    if (captured_ != kNone) {
      toggle_capture();
    }
    while (!graphs_.empty()) {
      destroy_graph();
    }
    while (!live_.empty()) {
      free();
    }
  }

 private:
  static constexpr Stream kNone = ~Stream{0};

  size_t any_size(uint64_t most_log2) {
    return 1 + random_() % (size_t{1} << (random_() % (most_log2 + 1)));
  }

  Stream any_stream() {
    const size_t which = random_() % (lasting_.size() + kPassing + 1);
    return which == 0                 ? kPerThread
           : which <= lasting_.size() ? lasting_[which - 1]
                                      : passing_[which - 1 - lasting_.size()];
  }

  void complete() { gpu_.source.complete(any_stream(), random_() % 4); }

  void set_limit() {
    gpu_.allocator->set_limit(Shadow::kDevice, random_() % 2 == 0 ? SIZE_MAX : any_size(29));
  }

  void allocate() {
    // While it captures, half of what it does is part of that. Of sizes, half are of one bin.
    Stream stream = captured_ != kNone && random_() % 2 == 0 ? captured_ : any_stream();
    stream = stream == passing_[kReads] ? passing_[kOwns] : stream;
    const size_t bytes = random_() % 2 == 0 ? any_size(26) : (1 << 18) + random_() % (1 << 14);
    try {
      live_.push_back(gpu_.allocate(bytes, stream));
    } catch (const OutOfMemory&) {
      // It may be so.
    }
  }

  void free() {
    if (!live_.empty()) {
      const size_t which = random_() % live_.size();
      const Shadow::Allocation allocation = live_[which];
      live_.erase(live_.begin() + int64_t(which));
      gpu_.free(allocation);
    }
  }

  void use() {
    if (!live_.empty()) {
      gpu_.use(live_[random_() % live_.size()], any_stream());
    }
  }

  void toggle_capture() {
    if (captured_ != kNone) {
      gpu_.end_capture(graphs_.back(), captured_);
      captured_ = kNone;
    } else if (graphs_.size() < kMaxGraphs) {
      captured_ = random_() % 4 == 0 ? kPerThread : passing_[kOwns];
      const PoolId pool{number_ + 1, random_() % 2};
      graphs_.push_back(gpu_.begin_capture(captured_, pool));
    }
  }

  void destroy_graph() {
    if (!graphs_.empty() && captured_ == kNone) {
      gpu_.destroy_graph(graphs_.back());
      graphs_.pop_back();
    }
  }

  // What only reads may end while it does; what owns memory has nothing left to do then.
  void replace_stream() {
    const size_t which = random_() % kPassing;
    Stream& stream = passing_[which];
    if (captured_ != kNone) {
      return;
    }
    const HostileSource::Id id = gpu_.source.id_of(stream);
    for (size_t i = live_.size(); i-- > 0;) {
      if (live_[i]->users.count(id) > 0) {
        const Shadow::Allocation allocation = live_[i];
        live_.erase(live_.begin() + int64_t(i));
        gpu_.free(allocation);
      }
    }
    if (which == kOwns && !finish(stream)) {
      return;
    }
    gpu_.source.destroy_stream(stream);
    stream = gpu_.source.create_stream();
  }

  bool finish(Stream stream) {
    if (random_() % 2 == 0) {
      gpu_.source.complete(stream, ~uint64_t{0});
    }
    if (gpu_.source.is_idle(stream)) {
      return true;
    }
    try {
      gpu_.pooled->stream_ends({Shadow::kDevice, stream});
    } catch (const std::runtime_error&) {
      return false;  // another thread captures
    }
    return true;
  }

  void trim() {
    try {
      gpu_.allocator->trim(Shadow::kDevice, random_() % 2 == 0 ? 0 : any_size(29));
    } catch (const std::runtime_error&) {
      // Another thread captures, or the driver is set to refuse.
    }
  }

  void be_nasty(uint64_t which) {
    switch (which % 3) {
      case 0:
        gpu_.source.failing_allocations = random_() % 3;
        return;
      case 1:
        gpu_.source.failing_releases = random_() % 3;
        return;
      default:
        gpu_.source.lag = random_() % 5;
    }
  }

  Shadow& gpu_;
  const std::vector<Stream>& lasting_;
  const uint64_t number_;
  std::mt19937_64 random_;
  std::vector<Stream> passing_;
  std::vector<Shadow::Allocation> live_;
  std::vector<size_t> graphs_;
  Stream captured_ = kNone;
};

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int which, uint64_t otherwise) {
    return count > which ? std::strtoull(arguments[which], nullptr, 10) : otherwise;
  };
  const uint64_t operations = argument(1, 100000), seed = argument(2, 1), threads = argument(3, 8);
  std::atomic<bool> is_over{false};
  std::mutex mutex;
  std::string fault;
  const auto guarded = [&](auto work) {
    try {
      work();
    } catch (const std::exception& error) {
      const std::lock_guard<std::mutex> lock(mutex);
      fault = fault.empty() ? error.what() : fault;
      is_over = true;
    }
  };
  Shadow gpu(kCapacity);
  const std::vector<Stream> lasting{0, gpu.source.create_stream(), gpu.source.create_stream(),
                                    gpu.source.create_stream()};
  gpu.pooled->keep_stream({Shadow::kDevice, lasting.back()});
  std::vector<std::thread> running;
  for (uint64_t number = 0; number < threads; ++number) {
    running.emplace_back([&, number] {
      guarded([&] {
        Actor actor(gpu, lasting, seed, number);
        for (uint64_t i = 0; i < operations / threads && !is_over; ++i) {
          actor.act();
        }
        actor.leave();
      });
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  if (!is_over) {
    guarded([&] { gpu.drain(); });
  }
  std::puts(fault.empty() ? "nothing wrong" : fault.c_str());
  return fault.empty() ? 0 : 1;
}
