#include "entries.cuh"
PASS(ctr)
