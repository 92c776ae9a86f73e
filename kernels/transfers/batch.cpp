// One batched call with one entry per piece.
#include "../common/moves/batch.h"

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Batch>(pieces); }
