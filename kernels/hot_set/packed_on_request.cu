// A kernel requests all missing rows and copies them as the CPU packs them.
#include "on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_on_request(layers, cpus, 0);
}
