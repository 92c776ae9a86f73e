// The SMs read a share of the missing rows in place while the CPU packs the others. A model chooses
// the share from the number of misses and the size of the pool, unless the case gives it.
#include "on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_on_request(layers, cpus, layers.front().share_32nds);
}
