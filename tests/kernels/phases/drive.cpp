// Drives a variant's allocator without a GPU:
//
//   drive scenarios                         every scenario
//   drive storm SOURCE OPERATIONS THREADS   threads that do anything
//   drive trace                             number of traced events of a first allocation
//
// Exits with 1 after a fault, with what was expected and what came.
#include <malloc.h>

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
    return which < lasting_.size()   ? lasting_[which]
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
void storm(Shadow& gpu, uint64_t operations, uint64_t threads) {
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

// A check of an allocator in one situation that no storm makes sure to meet. Each begins with a
// device of 1 GiB and two new streams, and everything is drained after it.
struct Scenario {
  const char* source;  // as drive.cpp names it
  const char* name;
  void (*run)(Shadow& gpu, Stream owner, Stream user);
};

constexpr PoolId kPool{0, 1};

void at_most(uint64_t most, uint64_t got, const std::string& unit) {
  require(got <= most, "at most " + std::to_string(most) + " " + unit, std::to_string(got));
}

void allocate_and_free(Allocator& allocator, int device = 0) {
  allocator.deallocate(allocator.allocate(512, {device, 7}), {device, 7});
}

constexpr Scenario kScenarios[] = {
    // Frees of memory that other streams use, without and with a wait on the device.
    {"order", "a slow stream holds only its memory",
     [](Shadow& gpu, Stream owner, Stream user) {
       const Stream quick = gpu.source.create_stream();
       for (int i = 0; i < 4000; ++i) {
         gpu.free_while_read(32 * kKiB, owner, i % 16 == 0 ? user : quick);
         gpu.source.complete(quick, 1);
       }
       at_most(16 * kMiB, gpu.source.counts(Shadow::kDevice).reserved, "B for 250 blocks");
     }},
    {"order", "streams that are gone take no host memory",
     [](Shadow& gpu, Stream, Stream) {
       std::vector<Stream> streams(200);
       for (Stream& stream : streams) {
         stream = gpu.source.create_stream();
       }
       const size_t before = mallinfo2().uordblks;
       for (const Stream stream : streams) {
         const Place place{Shadow::kDevice, stream};
         gpu.allocator->deallocate(gpu.allocator->allocate(4 * kKiB, place), place);
         gpu.allocator->trim(Shadow::kDevice, 0);
       }
       at_most(200 * kKiB, mallinfo2().uordblks - before, "B for 200 streams");
     }},
    {"order", "much memory is waited for on the device, and nobody on the host",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.reserves(64 * kMiB);
       at_most(0, gpu.source.counts(Shadow::kDevice).event_waits, "waits of the host");
       require(!gpu.source.is_idle(owner), "an owner that waits", "an idle one");
     }},
    {"order", "little memory is not waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.allocate(512 * kMiB, owner);
       gpu.free_while_read(16 * kMiB, owner, user);
       gpu.allocate(16 * kMiB, owner);
       gpu.reserves(544 * kMiB);
       require(gpu.source.is_idle(owner), "an idle owner", "one that waits");
     }},
    {"order", "an owner waits for no later use than that of the memory it gets",
     [](Shadow& gpu, Stream owner, Stream user) {
       const auto first = gpu.allocate(64 * kMiB, owner), second = gpu.allocate(64 * kMiB, owner);
       for (const auto& read : {first, second}) {
         gpu.use(read, user);
         gpu.free(read);
       }
       gpu.allocate(64 * kMiB, owner);
       gpu.source.complete(user, 1);
       gpu.source.complete(owner, ~uint64_t{0});
       require(gpu.source.is_idle(owner), "a wait for the first use", "one for both");
       gpu.allocate(64 * kMiB, owner);
     }},
    {"order", "an owner waits for the use of the memory it gets, whatever was freed before",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(4 * kMiB, owner, user);
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
     }},
    {"order", "an owner that waits gets memory of its heap only",
     [](Shadow& gpu, Stream owner, Stream user) {
       const Stream other = gpu.source.create_stream();
       gpu.pooled.keep_stream({Shadow::kDevice, user});  // one event for both
       gpu.free_while_read(4 * kMiB, other, user);
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.allocate(64 * kMiB, owner);
       gpu.allocate(4 * kMiB, other);
     }},
    {"order", "all users are waited for",
     [](Shadow& gpu, Stream owner, Stream user) {
       const auto read = gpu.allocate(64 * kMiB, owner);
       gpu.use(read, user);
       gpu.use(read, 0);
       gpu.free(read);
       gpu.source.complete(user, 1);
       gpu.allocate(64 * kMiB, owner);
     }},
    // Captures and refusals of the driver.
    {"order", "during a capture the heap may grow, and no trim ends it",
     [](Shadow& gpu, Stream owner, Stream) {
       gpu.free(gpu.allocate(512 * kMiB));
       const size_t graph = gpu.begin_capture(owner, kPool);
       gpu.allocate(64 * kMiB, owner);
       gpu.allocate(64 * kMiB);
       works([&] { gpu.allocator->trim(Shadow::kDevice, 0); });
       gpu.end_capture(graph, owner);
       gpu.destroy_graph(graph);
     }},
    {"order", "a captured stream waits for nothing outside of its graph",
     [](Shadow& gpu, Stream owner, Stream user) {
       gpu.free_while_read(64 * kMiB, owner, user);
       gpu.source.begin_capture(owner, true);
       gpu.allocate(64 * kMiB, owner);
       gpu.source.end_capture(owner);
     }},
    {"order", "graphs of one pool share its memory",
     [](Shadow& gpu, Stream owner, Stream) {
       for (int i = 0; i < 10; ++i) {
         const size_t graph = gpu.begin_capture(owner, kPool);
         gpu.free(gpu.allocate(64 * kMiB, owner));
         gpu.end_capture(graph, owner);
       }
       gpu.reserves(64 * kMiB);
       for (size_t graph = 0; graph < 10; ++graph) {
         gpu.destroy_graph(graph);
       }
     }},
    // Pages that are mapped where they are needed.
    {"pages", "a batch that grows gets the memory of the previous one",
     [](Shadow& gpu, Stream, Stream) {
       for (size_t size = 1; size < 16; ++size) {
         std::vector<Shadow::Allocation> batch;
         for (int i = 0; i < 8; ++i) {
           batch.push_back(gpu.allocate((16 + size) * kMiB));
         }
         for (const auto& block : batch) {
           gpu.free(block);
         }
         gpu.reserves(8 * (16 + size) * kMiB);
       }
     }},
    {"pages", "a range begins with a segment, or with the memory that is left",
     [](Shadow& gpu, Stream owner, Stream) {
       gpu.allocate(3 * kMiB);
       gpu.reserves(20 * kMiB);
       gpu.allocator->set_limit(Shadow::kDevice, 24 * kMiB);
       gpu.allocate(3 * kMiB, owner);
       gpu.reserves(24 * kMiB);
     }},
    {"pages", "the end of a range is used last, however well it fits",
     [](Shadow& gpu, Stream, Stream) {
       const auto before = gpu.allocate(64 * kMiB);
       const uintptr_t hole = before->start;
       gpu.allocate(2 * kMiB);
       gpu.free(gpu.allocate(32 * kMiB));
       gpu.free(before);
       require(gpu.allocate(32 * kMiB)->start == hole, "the hole that fits", "the end");
     }},
    // Observers of the allocator with PyTorch's feature set.
    {"segments", "statistics are by kind and size, and keep peaks",
     [](Shadow&, Stream, Stream) {
       HostileSource source(kGiB);
       dropin::FullFeatured allocator(source);
       allocator.allocate(1000, {0, 0});
       allocator.deallocate(allocator.allocate(3 * kMiB, {0, 0}), {0, 0});
       allocator.trim(0, 0);
       allocator.allocate(2 * kMiB, {0, 0});
       const auto stats = allocator.observer<dropin::SizeStatistics>(0);
       const auto &small = stats.small, &large = stats.large;
       const std::pair<uint64_t, uint64_t> counts[] = {
           {stats.all.allocations.added, 3},       {stats.all.allocations.current, 2},
           {small.requested_bytes.current, 1000},  {small.allocated_bytes.current, kKiB},
           {large.allocated_bytes.peak, 3 * kMiB}, {large.allocated_bytes.current, 2 * kMiB},
           {large.reserved_bytes.peak, 20 * kMiB}, {large.segments.removed, 1},
           {stats.by_size[10].current, 1},         {stats.by_size[21].removed, 1},
       };
       for (const auto& [got, expected] : counts) {
         require(got == expected, std::to_string(expected), std::to_string(got));
       }
     }},
};

std::unique_ptr<HostileSource> make_source(const std::string& name, size_t capacity) {
  if (name == "segments") {
    return std::make_unique<HostileSource>(capacity);
  }
  return name == "pages" ? std::make_unique<HostilePages>(capacity)
                         : std::make_unique<HostileOrder>(capacity);
}

void run_scenario(const Scenario& scenario) {
  Shadow gpu(make_source(scenario.source, kGiB));
  scenario.run(gpu, gpu.source.create_stream(), gpu.source.create_stream());
  gpu.drain();
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const char* what = "";
  try {
    if (words.at(0) == "scenarios") {
      for (const Scenario& scenario : kScenarios) {
        what = scenario.name;
        run_scenario(scenario);
      }
    } else if (words[0] == "storm") {
      Shadow gpu(make_source(words.at(1), 512 * kMiB));
      storm(gpu, std::stoull(words.at(2)), std::stoull(words.at(3)));
      gpu.drain();
    } else {
      HostileSource source(kGiB);
      const auto allocator = make_allocator(source);
      allocate_and_free(*allocator);
      std::printf("%zu\n", dynamic_cast<dropin::FullFeatured&>(*allocator).trace(0).size());
    }
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", what, error.what());
    return 1;
  }
  return 0;
}
