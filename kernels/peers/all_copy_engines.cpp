// Each GPU's copy engine brings a share over its own link, and writes it to the first GPU.
#include "copy.h"

const Plan kPlan = {"host", "all", "first", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
