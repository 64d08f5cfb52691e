#include "entries.cuh"
PASS(ecb_encrypt)
