// A loop that the compiler may not leave out.
#include "operation.h"

int call(int calls) {
  volatile int done = 0;
  while (done < calls) {
    done = done + 1;
  }
  return done;
}
