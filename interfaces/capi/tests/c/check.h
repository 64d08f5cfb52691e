/* Macros and functions with which the test program makes its checks. A failed check ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep.h>

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: the last error is: %s\n", __FILE__, __LINE__, #condition, \
                    lockstep_last_error_message());                                          \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/* Checks that the call succeeds. */
#define OK(call) CHECK((call) == LOCKSTEP_OK)

/* Checks that the call fails with this code, and that there is an error message. */
#define FAILS(code, call) CHECK((call) == (code) && lockstep_last_error_message()[0] != '\0')

/* Sets `len` bytes to first, first + step, first + 2 step, and so on. */
static inline void count_up(uint8_t *bytes, size_t len, unsigned first, unsigned step)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(first + step * i);
}

static inline int is_all(const uint8_t *bytes, size_t len, uint8_t value)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

/* True if each byte has one of the two values. */
static inline int is_all_of(const uint8_t *bytes, size_t len, uint8_t one, uint8_t other)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != one && bytes[i] != other)
            return 0;
    return 1;
}

static inline lockstep_key *new_key(int aead, size_t len)
{
    uint8_t bytes[64];
    lockstep_key *key;
    count_up(bytes, len, 0, 1);
    OK(lockstep_key_new(aead, bytes, len, &key));
    return key;
}

static inline lockstep_cipher_key *new_cipher_key(int cipher, size_t len)
{
    uint8_t bytes[64];
    lockstep_cipher_key *key;
    count_up(bytes, len, 0, 1);
    OK(lockstep_cipher_key_new(cipher, bytes, len, &key));
    return key;
}

void test_aead(const lockstep_engine *engine);
void test_cipher(const lockstep_engine *engine);
void test_format(const lockstep_engine *engine, const char *folder);
void test_misuse(const lockstep_engine *engine, const char *folder);
void test_options(const lockstep_engine *engine, const char *folder);
void test_secrets(const lockstep_engine *engine, const char *folder);
void test_fork(const lockstep_engine *engine);
void test_device(const char *device, const char *folder);
void test_parquet(const lockstep_engine *engine, const char *folder);
void test_parquet_device(const lockstep_engine *engine, const char *folder);
void print_vectors(const lockstep_engine *engine);

#endif
