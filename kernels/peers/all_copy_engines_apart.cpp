// Each GPU's copy engine brings a share over its own link into its own memory.
#include "copy.h"

const Plan kPlan = {"host", "all", "each", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
