// A memory resource of RAPIDS RMM.
#include "../phases/rmm.cpp"
