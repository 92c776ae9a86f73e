// The SMs read every missing row in place, a warp a row, in few blocks.
#include "layers_on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_layers(layers, cpus, false);
}
