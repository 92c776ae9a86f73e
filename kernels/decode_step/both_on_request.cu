// CPU threads pack missing rows, but for a share that the SMs read in place meanwhile.
#include "layers_on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_layers(layers, cpus, Bringing::kShared);
}
