// Each GPU's copy engine takes a share to the host, over its own link.
#include "copy.h"

const Plan kPlan = {"each", "all", "host", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
