// Each GPU's copy engine copies a share over its link into its GPU's memory.
#include "copy.h"

const Plan kPlan = {"host", "all", "each", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
