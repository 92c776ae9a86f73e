// Queues kBatch writes; only the poll hands them to the provider.
#include "published_operations.h"

void Path::turn() {
  writes_.poll();
  for (int i = 0; i < kBatch && device_.has_next(); ++i) {
    writes_.queue([this] { complete(); });
    ++posted_;
  }
}
