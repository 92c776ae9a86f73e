// Drives a variant's allocator without a GPU:
//
//   drive scenarios                         every scenario
//   drive storm SOURCE OPERATIONS THREADS   threads that do anything
//
// Exits with 1 after a fault, with what was expected and what came.
#include <cstdio>
#include <random>
#include <thread>

#include "full_featured.h"
#include "shadow.h"

namespace {

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

  void act() {
    const std::pair<uint64_t, void (Actor::*)()> until[] = {
        {400, &Actor::allocate},      {620, &Actor::free},           {780, &Actor::use},
        {920, &Actor::complete},      {940, &Actor::begin_capture},  {945, &Actor::end_capture},
        {965, &Actor::destroy_graph}, {975, &Actor::replace_stream}, {985, &Actor::trim_or_limit},
        {1000, &Actor::be_nasty},
    };
    const auto* action = until;
    for (const uint64_t which = random_() % 1000; which >= action->first; ++action) {
    }
    (this->*action->second)();
  }

  // Ends what only this thread can end.
  void leave() {
    end_capture();
    while (!graphs_.empty()) {
      destroy_graph();
    }
  }

 private:
  static constexpr Stream kNone = ~Stream{0};
  static constexpr size_t kReads = 0, kOwns = 1;  // the streams that pass
  static constexpr size_t kMaxLive = 40, kMaxGraphs = 3;

  bool is_capturing() const { return captured_ != kNone; }
  bool coin() { return random_() % 2 == 0; }
  size_t any_size(uint64_t max_log2) { return 1 + random_() % (1 << random_() % (max_log2 + 1)); }

  Stream any_stream() {
    const uint64_t which = random_() % (lasting_.size() + 3);
    return which < lasting_.size()   ? lasting_[which]
           : which > lasting_.size() ? passing_[which - lasting_.size() - 1]
                                     : kPerThread;
  }

  void free_at(size_t which) {
    gpu_.free(live_[which]);
    live_.erase(live_.begin() + int64_t(which));
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
    }
    if (live_.size() > kMaxLive) {
      free();
    }
  }

  void free() {
    if (!live_.empty()) {
      free_at(random_() % live_.size());
    }
  }

  void use() {
    if (!live_.empty()) {
      gpu_.use(live_[random_() % live_.size()], any_stream());
    }
  }

  void complete() { gpu_.source.complete(any_stream(), random_() % 4); }

  void begin_capture() {
    if (!is_capturing() && graphs_.size() < kMaxGraphs && random_() % 5 == 0) {
      captured_ = random_() % 4 == 0 ? kPerThread : passing_[kOwns];
      graphs_.push_back(gpu_.begin_capture(captured_, {pool_, random_() % 2}));
    }
  }

  void end_capture() {
    if (is_capturing()) {
      gpu_.end_capture(graphs_.back(), std::exchange(captured_, kNone));
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
        free_at(i);
      }
    }
    if (coin()) {
      gpu_.source.complete(stream, 1 << 20);
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
  }

  Shadow& gpu_;
  const std::vector<Stream>& lasting_;
  const uint64_t pool_;
  std::mt19937_64 random_;
  Stream passing_[2] = {gpu_.source.create_stream(), gpu_.source.create_stream()};
  std::vector<Shadow::Allocation> live_;
  std::vector<Shadow::Graph> graphs_;
  Stream captured_ = kNone;
};

// Throws the first fault that `threads` find in `operations`.
void storm(Shadow& gpu, uint64_t operations, uint64_t threads) {
  std::atomic<bool> is_over{false};
  std::exception_ptr fault;
  const std::vector<Stream> lasting{0, gpu.source.create_stream(), gpu.source.create_stream()};
  gpu.pooled.keep_stream({Shadow::kDevice, lasting.back()});
  std::vector<std::thread> running;
  for (uint64_t seed = 0; seed < threads; ++seed) {
    running.emplace_back([&, seed] {
      try {
        Actor actor(gpu, lasting, seed);
        for (uint64_t i = 0; i < operations / threads && !is_over; ++i) {
          actor.act();
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

// A check of an allocator in one situation that no storm makes sure to meet. Each begins with a
// device of 1 GiB whose streams wait for each other, and two new ones; everything is drained after.
struct Scenario {
  const char* name;
  void (*run)(Shadow& gpu, Stream owner, Stream user);
};

constexpr PoolId kPool{0, 1};

constexpr Scenario kScenarios[] = {
    {"much memory is waited for on the device, and nobody on the host",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.reserves(64 * kMiB);
       require(!gpu.source.is_idle(owner), "an owner that waits", "an idle one");
     }},
    {"little memory is not waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.allocate(512 * kMiB, owner);
       gpu.free_while_read(16 * kMiB, owner, user);
       gpu.allocate(16 * kMiB, owner);
       gpu.reserves(544 * kMiB);
     }},
    {"an owner waits for no later use than that of the memory it gets",
     [](Shadow& gpu, Stream owner, Stream user) {
       const auto first = gpu.allocate(64 * kMiB, owner), second = gpu.allocate(64 * kMiB, owner);
       for (const auto& read : {first, second}) {
         gpu.use(read, user);
         gpu.free(read);
       }
       gpu.allocate(64 * kMiB, owner);
       gpu.source.complete(owner, 1000);
       require(!gpu.source.is_idle(user), "a wait for the first use", "one for both");
       gpu.allocate(64 * kMiB, owner);
     }},
    {"an owner that waits gets memory of its heap only",
     [](Shadow& gpu, Stream owner, Stream user) {
       const Stream other = gpu.source.create_stream();
       gpu.pooled.keep_stream({Shadow::kDevice, user});  // one event for both
       gpu.free_while_read(4 * kMiB, other, user);
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.allocate(4 * kMiB, other);
     }},
    {"a captured stream waits for nothing outside of its graph",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.source.begin_capture(owner, true);
       gpu.allocate(64 * kMiB, owner);
       gpu.source.end_capture(owner);
     }},
    {"graphs of one pool share its memory, which the last one releases",
     [](Shadow& gpu, Stream owner, Stream) {
       std::vector<Shadow::Graph> graphs;
       for (int i = 0; i < 3; ++i) {
         graphs.push_back(gpu.begin_capture(owner, kPool));
         gpu.free(gpu.allocate(64 * kMiB, owner));
         gpu.end_capture(graphs.back(), owner);
       }
       gpu.reserves(64 * kMiB);
       for (const auto& graph : graphs) {
         gpu.destroy_graph(graph);
       }
     }},
    {"a batch that grows gets the memory of the previous one",
     [](Shadow& gpu, Stream, Stream) {
       for (size_t size = 17; size < 32; ++size) {
         std::vector<Shadow::Allocation> batch;
         for (int i = 0; i < 8; ++i) {
           batch.push_back(gpu.allocate(size * kMiB));
         }
         std::for_each(batch.begin(), batch.end(), [&](auto& block) { gpu.free(block); });
         gpu.reserves(8 * size * kMiB);
       }
     }},
    {"a range begins with a segment, or with the memory that is left",
     [](Shadow& gpu, Stream owner, Stream) {
       gpu.allocate(3 * kMiB);
       gpu.reserves(20 * kMiB);
       gpu.allocator->set_limit(Shadow::kDevice, 24 * kMiB);
       gpu.allocate(3 * kMiB, owner);
       gpu.reserves(24 * kMiB);
     }},
    {"the end of a range is used last, however well it fits",
     [](Shadow& gpu, Stream, Stream) {
       const auto before = gpu.allocate(64 * kMiB);
       const char* hole = before->start;
       gpu.allocate(2 * kMiB);
       gpu.free(gpu.allocate(32 * kMiB));
       gpu.free(before);
       require(gpu.allocate(32 * kMiB)->start == hole, "the hole that fits", "the end");
     }},
    {"statistics are by kind and size, and keep peaks",
     [](Shadow&, Stream, Stream) {
       HostileSource source(kGiB);
       dropin::FullFeatured allocator(source);
       allocator.allocate(1000, {0, 0});
       allocator.deallocate(allocator.allocate(3 * kMiB, {0, 0}), {0, 0});
       allocator.trim(0, 0);
       allocator.allocate(2 * kMiB, {0, 0});
       const auto stats = allocator.observer<dropin::SizeStatistics>(0);
       const auto& large = stats.large.allocated_bytes;
       require(large.peak == 3 * kMiB && large.current == 2 * kMiB, "a peak that stays", "another");
       require(stats.all.allocations.added == 3 && stats.large.segments.removed == 1 &&
                   stats.small.requested_bytes.current == 1000 && stats.by_size[10].current == 1,
               "statistics by kind and size", "others");
     }},
};

std::unique_ptr<HostileSource> make_source(const std::string& name, size_t capacity) {
  if (name == "segments") {
    return std::make_unique<HostileSource>(capacity);
  }
  return name == "pages" ? std::make_unique<HostilePages>(capacity)
                         : std::make_unique<HostileOrder>(capacity);
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const char* what = "";
  try {
    if (words.at(0) == "scenarios") {
      for (const Scenario& scenario : kScenarios) {
        what = scenario.name;
        Shadow gpu(make_source("order", kGiB));
        scenario.run(gpu, gpu.source.create_stream(), gpu.source.create_stream());
        gpu.drain();
      }
    } else {
      Shadow gpu(make_source(words.at(1), 512 * kMiB));
      storm(gpu, std::stoull(words.at(2)), std::stoull(words.at(3)));
      gpu.drain();
    }
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", what, error.what());
    return 1;
  }
  return 0;
}
