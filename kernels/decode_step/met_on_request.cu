// CPU threads pack missing rows while the SMs read others in place, until both sides meet.
#include "layers_on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_layers(layers, cpus, Bringing::kBothUntilMet);
}
