#include "entries.cuh"
PASS(cfb_decrypt)
