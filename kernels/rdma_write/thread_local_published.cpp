// Each thread counts in variables of its own and publishes them once in kPublishEvery completions.
#include "published_operations.h"

namespace {

class Path : public PublishedOperations {
 public:
  using PublishedOperations::PublishedOperations;

  void turn() {
    operations_.poll();
    if (device_.has_next()) {
      operations_.post([this] { complete(); });
      ++posted_;
    }
  }
};

}  // namespace

void write_pages(Transfer& transfer) {
  Path::Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
