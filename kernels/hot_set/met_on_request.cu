// The SMs read misses in place from the first one on, and the CPU packs them from the last one on,
// until both sides meet. From a pool within the reach of the TLB, the SMs read all of them.
#include "on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_on_request(layers, cpus, kChosen, true);
}
