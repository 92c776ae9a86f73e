// Posts kBatch writes between two polls instead of one.
#include "published_operations.h"

namespace {

constexpr int kBatch = 16;

class Path : public PublishedOperations {
 public:
  using PublishedOperations::PublishedOperations;

  void turn() {
    operations_.poll();
    for (int i = 0; i < kBatch && device_.has_next(); ++i) {
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
