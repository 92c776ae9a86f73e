// The copy engine copies contiguous bytes to the host.
#include "copy.h"

const Plan kPlan = {"first", "first", "host", "copy", "none"};

Move prepare(const Share&, const Resources&) { return copy; }
