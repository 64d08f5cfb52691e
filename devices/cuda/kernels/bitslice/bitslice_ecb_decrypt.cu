#include "entries.cuh"
PASS(ecb_decrypt)
