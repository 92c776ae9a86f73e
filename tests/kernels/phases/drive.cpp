// Drives a variant's allocator without a GPU:
//
//   drive scenarios                         every scenario
//   drive storm SOURCE OPERATIONS THREADS   threads that do anything
//   drive trace                             number of traced events of a first allocation
//
// Exits with 1 after a fault, with what was expected and what came.
#include <cstdio>

#include "scenarios.h"

namespace {

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
