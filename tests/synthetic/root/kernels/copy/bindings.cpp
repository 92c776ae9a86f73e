// Python's way in.
#include "operator.h"

void bind(const Copy& copy) { launch(copy); }
