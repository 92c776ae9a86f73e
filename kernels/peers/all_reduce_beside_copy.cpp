// An all-reduce while one of the GPUs copies contiguous bytes of host memory by its copy engine.
#include "copy.h"

const Plan kPlan = {"each", "all", "each", "all_reduce", "copy"};

Move prepare(const Share&, const Resources&) { return copy; }
