// Each thread counts in local variables and publishes them every kPublishEvery completions.
#include "published_operations.h"

void Path::turn() {
  writes_.poll();
  if (device_.has_next()) {
    writes_.post([this] { complete(); });
    ++posted_;
  }
}
