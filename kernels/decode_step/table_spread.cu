// A block a request resolves by a table of slots; other blocks fetch what it finds missing. It is
// the step of one layer of the study hot_set, once for each layer.
#include "../hot_set/table_spread.cu"
#include "absolute_slots.h"
