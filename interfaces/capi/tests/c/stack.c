/* Tests that functions that make keys leave no copies of the keys on the stack. The program cannot run with sanitizers, because it
 * reads memory below its stack pointer. */
#include "check.h"

enum { LEN = 16, DEPTH = 256 * 1024, MASK = 0x5a };

/* The key, with each byte changed by MASK. Without the change, the search for the key could find a copy of this variable. */
static uint8_t *masked;

static __attribute__((noinline)) size_t copies(void)
{
    volatile uint8_t here = 0;
    const volatile uint8_t *end = &here - 512;
    size_t found = 0;
    for (const volatile uint8_t *at = end - DEPTH; at + LEN < end; at++) {
        size_t equal = 0;
        while (equal < LEN && (at[equal] ^ MASK) == masked[equal])
            equal++;
        found += equal == LEN;
    }
    return found;
}

/* Leaves a copy of the key on the stack, to prove that the search finds such copies. */
static __attribute__((noinline)) uint8_t leave_copy(const uint8_t *key)
{
    volatile uint8_t place[4096];
    for (size_t i = 0; i < LEN; i++)
        place[i] = key[i];
    return place[0];
}

int main(void)
{
    uint8_t *bytes = malloc(64);
    lockstep_engine_options options = {sizeof options, "cpu", NULL, 1, 0};
    lockstep_engine *engine;
    lockstep_key *key;
    lockstep_cipher_key *cipher;
    lockstep_hctr2_key *hctr2;
    lockstep_file_key *file_key;
    masked = malloc(LEN);
    count_up(bytes, 64, 0xa3, 7);
    for (size_t i = 0; i < LEN; i++)
        masked[i] = bytes[i] ^ MASK;
    OK(lockstep_engine_new(&options, &engine));
    CHECK(copies() == 0);
    CHECK(leave_copy(bytes) == bytes[0] && copies() > 0);
    for (int mode = LOCKSTEP_AEAD_GCM; mode <= LOCKSTEP_AEAD_XAES_256_GCM; mode++) {
        OK(lockstep_key_new(mode, bytes, 32, &key));
        CHECK(copies() == 0);
        lockstep_key_free(key);
        CHECK(copies() == 0);
    }
    OK(lockstep_cipher_key_new(LOCKSTEP_CIPHER_XTS, bytes, 64, &cipher));
    CHECK(copies() == 0);
    lockstep_cipher_key_free(cipher);
    OK(lockstep_cipher_key_new(LOCKSTEP_CIPHER_CTR, bytes, 16, &cipher));
    CHECK(copies() == 0);
    OK(lockstep_hctr2_key_new(engine, cipher, &hctr2));
    CHECK(copies() == 0);
    lockstep_hctr2_key_free(hctr2);
    lockstep_cipher_key_free(cipher);
    OK(lockstep_file_key_new(bytes, 32, &file_key));
    CHECK(copies() == 0);
    lockstep_file_key_free(file_key);
    CHECK(copies() == 0);
    lockstep_engine_free(engine);
    puts("passed");
    return 0;
}
