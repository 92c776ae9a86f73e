// One batched call for all pieces.
#include "../common/moves/batch.h"

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Batch>(pieces); }
