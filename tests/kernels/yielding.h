// Lets threads that spin give way. On a machine with few cores, the threads that they wait for
// would otherwise get a core only when the scheduler takes one away from those that spin.
#pragma once

#include <sched.h>
#include <xmmintrin.h>

#define _mm_pause sched_yield
