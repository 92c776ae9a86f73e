// Threads that do anything at any time, checked against a shadow.
#pragma once

#include <random>
#include <thread>
#include <utility>

#include "shadow.h"

// False if another thread captures, or the driver refuses.
template <typename Call>
bool works(Call call) {
  try {
    call();
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

// One thread of the program, which keeps the rules of pooled_allocator.h. Half of its streams pass:
// they are destroyed, and come back under the same handle.
class Actor {
 public:
  Actor(Shadow& gpu, const std::vector<Stream>& lasting, uint64_t seed)
      : gpu_(gpu), lasting_(lasting), pool_(seed + 1), random_(seed) {}

  // The actions with their shares of 1000; most of the time nobody captures.
  void act() {
    const std::pair<uint64_t, void (Actor::*)()> actions[] = {
        {live_.size() < kMaxLive ? 400 : 150, &Actor::allocate},
        {620, &Actor::free},
        {780, &Actor::use},
        {920, &Actor::complete},
        {is_capturing() ? 950 : 924, &Actor::toggle_capture},
        {950, &Actor::destroy_graph},
        {965, &Actor::replace_stream},
        {980, &Actor::trim_or_limit},
        {1000, &Actor::be_nasty},
    };
    const uint64_t which = random_() % 1000;
    (this->*std::find_if(std::begin(actions), std::end(actions), [&](const auto& action) {
              return which < action.first;
            })->second)();
  }

  bool is_capturing() const { return captured_ != kNone; }

  // Ends what only this thread can end.
  void leave() {
    if (is_capturing()) {
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
  static constexpr size_t kReads = 0, kOwns = 1;  // the streams that pass
  static constexpr size_t kMaxLive = 40, kMaxGraphs = 3;

  bool coin() { return random_() % 2 == 0; }

  size_t any_size(uint64_t max_log2) {
    return 1 + random_() % (size_t{1} << (random_() % (max_log2 + 1)));
  }

  Stream any_stream() {
    const uint64_t which = random_() % (lasting_.size() + 3);
    return which < lasting_.size() ? lasting_[which]
           : which > lasting_.size() ? passing_[which - lasting_.size() - 1]
                                     : kPerThread;
  }

  Shadow::Allocation taken(size_t which) {
    const Shadow::Allocation allocation = live_[which];
    live_.erase(live_.begin() + int64_t(which));
    return allocation;
  }

  // During its capture, half of its requests are part of the graph. Half of the sizes fall into one
  // bin.
  void allocate() {
    Stream stream = is_capturing() && coin() ? captured_ : any_stream();
    stream = stream == passing_[kReads] ? passing_[kOwns] : stream;
    const size_t bytes = coin() ? any_size(26) : (1 << 18) + random_() % (1 << 14);
    try {
      live_.push_back(gpu_.allocate(bytes, stream));
    } catch (const OutOfMemory&) {
      // Memory may be exhausted.
    }
  }

  void free() {
    if (!live_.empty()) {
      gpu_.free(taken(random_() % live_.size()));
    }
  }

  void use() {
    if (!live_.empty()) {
      gpu_.use(live_[random_() % live_.size()], any_stream());
    }
  }

  void complete() { gpu_.source.complete(any_stream(), random_() % 4); }

  void toggle_capture() {
    if (is_capturing()) {
      gpu_.end_capture(graphs_.back(), std::exchange(captured_, kNone));
    } else if (graphs_.size() < kMaxGraphs) {
      captured_ = random_() % 4 == 0 ? kPerThread : passing_[kOwns];
      graphs_.push_back(gpu_.begin_capture(captured_, {pool_, random_() % 2}));
    }
  }

  void destroy_graph() {
    if (!graphs_.empty() && !is_capturing()) {
      gpu_.destroy_graph(graphs_.back());
      graphs_.pop_back();
    }
  }

  // A stream that only reads may end with work left; one that owns memory has none left.
  void replace_stream() {
    const size_t which = random_() % 2;
    Stream& stream = passing_[which];
    if (is_capturing()) {
      return;
    }
    for (size_t i = live_.size(); i-- > 0;) {
      if (live_[i]->users.count(gpu_.source.id_of(stream)) > 0) {
        gpu_.free(taken(i));
      }
    }
    if (coin()) {
      gpu_.source.complete(stream, ~uint64_t{0});
    }
    if (which == kReads || gpu_.source.is_idle(stream) ||
        works([&] { gpu_.pooled.stream_ends({Shadow::kDevice, stream}); })) {
      gpu_.source.destroy_stream(stream);
      stream = gpu_.source.create_stream();
    }
  }

  void trim_or_limit() {
    const size_t bytes = any_size(29);
    if (random_() % 3 == 0) {
      gpu_.allocator->set_limit(Shadow::kDevice, coin() ? SIZE_MAX : bytes);
    } else {
      works([&] { gpu_.allocator->trim(Shadow::kDevice, coin() ? 0 : bytes); });
    }
  }

  void be_nasty() {
    (coin() ? gpu_.source.failing_allocations : gpu_.source.failing_releases) = random_() % 5;
    gpu_.allocator->deallocate(nullptr, {Shadow::kDevice, 0});
  }

  Shadow& gpu_;
  const std::vector<Stream>& lasting_;
  const uint64_t pool_;
  std::mt19937_64 random_;
  Stream passing_[2] = {gpu_.source.create_stream(), gpu_.source.create_stream()};
  std::vector<Shadow::Allocation> live_;
  std::vector<size_t> graphs_;
  Stream captured_ = kNone;
};

// Throws the first fault that `threads` find in `operations`. One thread alone checks all blocks.
inline void storm(Shadow& gpu, uint64_t operations, uint64_t threads) {
  std::atomic<bool> is_over{false};
  std::exception_ptr fault;
  const std::vector<Stream> lasting{0, gpu.source.create_stream(), gpu.source.create_stream(),
                                    gpu.source.create_stream()};
  gpu.pooled.keep_stream({Shadow::kDevice, lasting.back()});
  std::vector<std::thread> running;
  for (uint64_t seed = 0; seed < threads; ++seed) {
    running.emplace_back([&, seed] {
      try {
        Actor actor(gpu, lasting, seed);
        for (uint64_t i = 0; i < operations / threads && !is_over; ++i) {
          actor.act();
          if (threads == 1 && !actor.is_capturing()) {
            gpu.check_blocks();
          }
        }
        actor.leave();
      } catch (...) {
        if (!is_over.exchange(true)) {
          fault = std::current_exception();
        }
      }
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  if (fault) {
    std::rethrow_exception(fault);
  }
}
