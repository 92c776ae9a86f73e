// Posts kBatch writes between two polls instead of one.
#include "published_operations.h"

void Path::turn() {
  writes_.poll();
  for (int i = 0; i < kBatch && device_.has_next(); ++i) {
    writes_.post([this] { complete(); });
    ++posted_;
  }
}
