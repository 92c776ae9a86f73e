// Drives a variant's allocator without a GPU:
//
//   drive scenarios                                every scenario
//   drive storm SOURCE OPERATIONS SEED THREADS     threads that do anything
//   drive trace                                    number of traced events of a first allocation
//
// Exits with 1 after a fault, with what was expected and what came.
#include <cstdio>
#include <cstdlib>

#include "scenarios.h"
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

int failed_scenarios() {
  int count = 0;
  for (const Scenario& scenario : kScenarios) {
    try {
      Shadow gpu(kSources.at(scenario.source)(kGiB));
      scenario.run(gpu, gpu.source.create_stream(), gpu.source.create_stream());
      gpu.drain();
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", scenario.name, error.what());
      ++count;
    }
  }
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const auto number = [&](size_t which) { return std::stoull(words.at(which)); };
  try {
    if (words.at(0) == "scenarios") {
      return failed_scenarios();
    } else if (words[0] == "storm") {
      Shadow gpu(kSources.at(words.at(1))(512 * kMiB));
      storm(gpu, number(2), number(3), number(4));
      gpu.drain();
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
