// Each GPU's copy engine copies a share over its link to the first GPU.
#include "copy.h"

const Plan kPlan = {"host", "all", "first", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
