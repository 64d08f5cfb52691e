#include "entries.cuh"
PASS(xts_decrypt)
