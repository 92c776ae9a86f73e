// The Python module of every variant.
#include "../common/moves/bindings.h"

PYBIND11_MODULE(variant, m) { def_method(m); }
