// A gather of scattered pieces, and one copy out at once.
#include "gather_at_once.h"

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<GatherAtOnce>(pieces);
}
