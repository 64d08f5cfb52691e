#include "entries.cuh"
PASS(xts_encrypt)
