// Evicts by the policy CLOCK.
#include "block_step.h"
#include "clock_resolve.h"

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  return prepare_block_steps<ClockResolve>(layers, ClockStates(layers));
}
