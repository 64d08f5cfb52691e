#include "entries.cuh"
PASS(ctr32)
