// Drives a variant's allocator without a GPU:
//
//   drive scenarios                                every scenario, with each kind of source
//   drive storm SOURCE OPERATIONS SEED THREADS     threads that do anything
//   drive states OPERATIONS SEED                   random actions, all states checked
//   drive trace                                    number of traced events of a first allocation
//
// Exits with 1 after a fault, with what was expected and what came.
#include <cstdio>
#include <cstdlib>

#include "scenarios.h"
#include "state_check.h"
#include "storm.h"

namespace {

using Make = std::unique_ptr<HostileSource> (*)(size_t capacity);

template <typename Source>
std::unique_ptr<HostileSource> make(size_t capacity) {
  return std::make_unique<Source>(capacity);
}

const std::map<std::string, Make> kSources{{"segments", make<HostileSource>},
                                           {"pages", make<HostilePages>},
                                           {"order", make<HostileOrder>}};

template <size_t kCount>
int faults(const std::string& source, const Scenario (&scenarios)[kCount]) {
  int count = 0;
  for (const Scenario& scenario : scenarios) {
    try {
      Shadow gpu(kSources.at(source)(kGiB));
      scenario.run(gpu, gpu.source.create_stream(), gpu.source.create_stream());
      gpu.drain();
    } catch (const std::exception& error) {
      std::printf("%s, %s: %s\n", source.c_str(), scenario.name, error.what());
      ++count;
    }
  }
  return count;
}

void check_states(uint64_t operations, uint64_t seed) {
  constexpr uint64_t kBurst = 500;
  for (uint64_t i = 0; i < operations / kBurst; ++i) {
    StateCheck states(256 * kMiB);
    states.burst(seed * 1000003 + i, kBurst, 12 + i % 15);
    states.drain();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const auto number = [&](size_t which) { return std::stoull(words.at(which)); };
  try {
    if (words.at(0) == "scenarios") {
      return faults("order", kFrees) + faults("segments", kRefusals) + faults("order", kRefusals) +
             faults("pages", kPages) + faults("segments", kObservers);
    } else if (words[0] == "storm") {
      Shadow gpu(kSources.at(words.at(1))(512 * kMiB));
      storm(gpu, number(2), number(3), number(4));
      gpu.drain();
    } else if (words[0] == "states") {
      check_states(number(1), number(2));
    } else {
      HostileSource source(kGiB);
      const auto allocator = make_allocator(source);
      allocate_and_free(*allocator);
      std::printf("%zu\n", dynamic_cast<dropin::FullFeatured&>(*allocator).trace(0).size());
    }
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 1;
  }
  return 0;
}
