// Prints the bytes that kernels/common/memory_limit.h finds allocatable under a root.
#include "../../kernels/common/memory_limit.h"

#include <cstdio>

int main(int, char** argv) {
  std::printf("%lld\n", static_cast<long long>(allocatable_bytes(argv[1])));
}
