// The SMs read every missing row in place, in few blocks.
#include "layers_on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_layers(layers, cpus, Bringing::kInPlace);
}
