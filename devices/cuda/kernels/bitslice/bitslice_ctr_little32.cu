#include "entries.cuh"
PASS(ctr_little32)
