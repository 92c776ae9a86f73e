// Each GPU's copy engine copies a share to the host over its link.
#include "copy.h"

const Plan kPlan = {"each", "all", "host", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
