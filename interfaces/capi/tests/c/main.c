/* The test program of the C interface.
 *
 *     program FOLDER            runs the tests; creates files in this folder, which contains plain.parquet
 *     program FOLDER DEVICE     runs the tests of device memory, on this device
 *     program vectors           prints results, which the caller compares with the reference implementation
 */
#include "check.h"

#include <pthread.h>

static void test_engine(const lockstep_engine *engine)
{
    size_t count = 0;
    char name[64];
    OK(lockstep_engine_device_count(engine, &count));
    CHECK(count >= 1);
    OK(lockstep_engine_device_name(engine, 0, name, sizeof name));
    CHECK(strcmp(name, "cpu") == 0);
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_engine_device_name(engine, 0, name, 3));
    FAILS(LOCKSTEP_ERROR_UNKNOWN_DEVICE, lockstep_engine_device_name(engine, count, name, sizeof name));
    CHECK(strncmp(lockstep_version(), "0.", 2) == 0);
}

static void *seal_in_thread(void *argument)
{
    const lockstep_engine *engine = argument;
    lockstep_key *key = new_key(LOCKSTEP_AEAD_GCM, 32);
    uint8_t nonce[12] = {0}, data[4096], sealed[4096], tag[16];
    count_up(data, sizeof data, 3, 5);
    CHECK(strcmp(lockstep_last_error_message(), "") == 0);
    for (int i = 0; i < 20; i++) {
        nonce[0] = (uint8_t)i;
        OK(lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, sizeof data, sealed, tag, 16));
        OK(lockstep_aead_open(engine, key, nonce, 12, NULL, 0, sealed, sizeof data, tag, 16, sealed));
        CHECK(memcmp(sealed, data, sizeof data) == 0);
    }
    FAILS(LOCKSTEP_ERROR_NONCE, lockstep_aead_seal(engine, key, nonce, 0, NULL, 0, data, 1, sealed, tag, 16));
    lockstep_key_free(key);
    return NULL;
}

/* Several threads use the same engine at the same time, each with a message of its own. */
static void test_threads(const lockstep_engine *engine)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, seal_in_thread, (void *)engine) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
#ifdef LOCKSTEP_LAB
    extern void lockstep_lab_register(void);
    lockstep_lab_register();
#endif
    lockstep_engine_options options = {sizeof options, "cpu", NULL, 2, LOCKSTEP_VERIFY_SAMPLE};
    lockstep_engine *engine;
    OK(lockstep_engine_new(&options, &engine));
    if (argc == 2 && strcmp(argv[1], "vectors") == 0) {
        print_vectors(engine);
    } else if (argc == 3) {
        test_device(argv[2], argv[1]);
    } else if (argc == 2) {
        test_engine(engine);
        test_threads(engine);
        test_aead(engine);
        test_cipher(engine);
        test_format(engine, argv[1]);
        test_parquet(engine, argv[1]);
        test_misuse(engine, argv[1]);
        test_options(engine, argv[1]);
        test_secrets(engine, argv[1]);
        test_fork(engine);
        puts("passed");
    } else {
        return 2;
    }
    lockstep_engine_free(engine);
    return 0;
}
