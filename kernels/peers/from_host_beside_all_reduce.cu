// A GPU gathers rows of host memory during an all-reduce with its peer.
#include "gather.h"

const Plan kPlan = {"host", "first", "first", "gather", "all_reduce"};

Move prepare(const Share&, const Resources&) { return gather; }
