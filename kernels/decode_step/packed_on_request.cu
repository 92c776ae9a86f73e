// CPU threads pack all missing rows.
#include "layers_on_request.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus) {
  return prepare_layers(layers, cpus, Bringing::kPacked);
}
