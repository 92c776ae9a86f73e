// The copy engine copies contiguous bytes of host memory.
#include "copy.h"

const Plan kPlan = {"host", "first", "first", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
