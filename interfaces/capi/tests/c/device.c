/* Tests with memory of a device: copies, modes, tables and wrapped pointers. The results are compared with those of the CPU. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 1000, COUNT = 3 };

static lockstep_device_buffer *upload(const lockstep_engine *engine, const void *bytes, size_t len)
{
    lockstep_device_buffer *buffer;
    OK(lockstep_device_allocate(engine, NULL, len, &buffer));
    OK(lockstep_device_upload(buffer, 0, bytes, len, NULL));
    return buffer;
}

static void modes(const lockstep_engine *engine, const lockstep_engine *cpu)
{
    static const int aeads[] = {LOCKSTEP_AEAD_GCM, LOCKSTEP_AEAD_OCB, LOCKSTEP_AEAD_CCM};
    uint8_t data[LEN], expected[LEN], got[LEN], nonce[12] = {7}, iv[16], iv_of_cpu[16], tag[16], tag_of_cpu[16];
    count_up(data, LEN, 0, 3);
    lockstep_device_buffer *from = upload(engine, data, LEN), *to = upload(engine, data, LEN);
    lockstep_device_range input = {from, 0, LEN}, output = {to, 0, LEN};
    lockstep_cipher_key *key = new_cipher_key(LOCKSTEP_CIPHER_CTR, 32);
    count_up(iv, 16, 250, 1);
    memcpy(iv_of_cpu, iv, 16);
    OK(lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &input, &output, NULL));
    OK(lockstep_cipher_encrypt(cpu, LOCKSTEP_CIPHER_CTR, key, iv_of_cpu, data, LEN, expected));
    OK(lockstep_device_download(to, 0, got, LEN, NULL));
    CHECK(memcmp(got, expected, LEN) == 0 && memcmp(iv, iv_of_cpu, 16) == 0);
    for (size_t i = 0; i < sizeof aeads / sizeof aeads[0]; i++) {
        lockstep_key *aead = new_key(aeads[i], 16);
        OK(lockstep_device_seal(engine, aead, nonce, 12, data, 9, &input, &output, tag, 16, NULL));
        OK(lockstep_aead_seal(cpu, aead, nonce, 12, data, 9, data, LEN, expected, tag_of_cpu, 16));
        OK(lockstep_device_download(to, 0, got, LEN, NULL));
        CHECK(memcmp(got, expected, LEN) == 0 && memcmp(tag, tag_of_cpu, 16) == 0);
        OK(lockstep_device_open(engine, aead, nonce, 12, data, 9, &output, &output, tag, 16, NULL));
        OK(lockstep_device_download(to, 0, got, LEN, NULL));
        CHECK(memcmp(got, data, LEN) == 0);
        tag[0] ^= 1;
        FAILS(LOCKSTEP_ERROR_AUTHENTICATION,
              lockstep_device_open(engine, aead, nonce, 12, data, 9, &input, &output, tag, 16, NULL));
        OK(lockstep_device_download(to, 0, got, LEN, NULL));
        CHECK(is_all(got, LEN, 0));
        lockstep_key_free(aead);
    }
    /* Ranges are refused if they exceed the buffer, overlap in part, or have different lengths. */
    lockstep_device_range outside = {to, 1, LEN}, part = {from, 1, LEN - 1}, huge = {to, SIZE_MAX, 2};
    lockstep_device_range head = {from, 0, LEN - 1};
    FAILS(LOCKSTEP_ERROR_OUTPUT,
          lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &input, &outside, NULL));
    FAILS(LOCKSTEP_ERROR_OUTPUT,
          lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &input, &huge, NULL));
    FAILS(LOCKSTEP_ERROR_OUTPUT,
          lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &input, &part, NULL));
    FAILS(LOCKSTEP_ERROR_OUT_OF_REACH,
          lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &head, &part, NULL));
    FAILS(LOCKSTEP_ERROR_ARGUMENT,
          lockstep_device_cipher(engine, LOCKSTEP_CIPHER_CTR, 3, key, iv, &input, &output, NULL));
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_device_upload(from, LEN, data, 1, NULL));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_device_download(NULL, 0, got, 1, NULL));
    /* The memory belongs to a device that the engine `cpu` does not have. */
    FAILS(LOCKSTEP_ERROR_UNKNOWN_DEVICE,
          lockstep_device_cipher(cpu, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, key, iv, &input, &output, NULL));
    lockstep_cipher_key_free(key);
    lockstep_device_buffer_free(from);
    lockstep_device_buffer_free(to);
}

/* Wraps the address of memory that another library has allocated. In this test, the memory is that of another buffer of Lockstep. */
static void wrapped(const lockstep_engine *engine)
{
    uint8_t data[64], got[64];
    count_up(data, 64, 5, 1);
    lockstep_device_buffer *owner = upload(engine, data, 64), *wrapped;
    void *pointer = lockstep_device_buffer_pointer(owner);
    if (pointer == NULL) {
        FAILS(LOCKSTEP_ERROR_OUT_OF_REACH, lockstep_device_wrap(engine, NULL, data, 64, &wrapped));
    } else {
        OK(lockstep_device_wrap(engine, NULL, pointer, 64, &wrapped));
        CHECK(lockstep_device_buffer_len(wrapped) == 64);
        OK(lockstep_device_download(wrapped, 0, got, 64, NULL));
        CHECK(memcmp(got, data, 64) == 0);
        lockstep_device_buffer_free(wrapped);
        FAILS(LOCKSTEP_ERROR_NULL, lockstep_device_wrap(engine, NULL, NULL, 64, &wrapped));
        FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_device_wrap(engine, NULL, pointer, SIZE_MAX, &wrapped));
        /* The address may be NULL if the length is 0, because an empty tensor has no address. */
        OK(lockstep_device_wrap(engine, NULL, NULL, 0, &wrapped));
        lockstep_device_range empty = {wrapped, 0, 0};
        lockstep_key *key = new_key(LOCKSTEP_AEAD_GCM, 16);
        uint8_t nonce[12] = {0}, tag[16], tag_of_cpu[16];
        OK(lockstep_device_seal(engine, key, nonce, 12, data, 9, &empty, &empty, tag, 16, NULL));
        OK(lockstep_aead_seal(engine, key, nonce, 12, data, 9, NULL, 0, NULL, tag_of_cpu, 16));
        CHECK(memcmp(tag, tag_of_cpu, 16) == 0);
        lockstep_key_free(key);
        lockstep_device_buffer_free(wrapped);
    }
    lockstep_device_buffer_free(owner);
}

static void *wait_elsewhere(void *completion)
{
    CHECK(lockstep_completion_is_ready(completion) == 0);
    FAILS(LOCKSTEP_ERROR_ORDER, lockstep_completion_wait(completion));
    return NULL;
}

/* The buffers and the engine are freed while the device works on the buffers. The call that frees them waits for the work. */
static void early_free(const char *device)
{
    enum { LONG = 1 << 16 };
    uint8_t *zeros = calloc(1, LONG), status = 0;
    uint64_t offset = 0, length = LONG;
    lockstep_engine_options options = {sizeof options, device, NULL, 2, LOCKSTEP_VERIFY_SAMPLE};
    lockstep_engine *engine;
    lockstep_completion *completion;
    OK(lockstep_engine_new(&options, &engine));
    lockstep_device_buffer *buffers[] = {
        upload(engine, zeros, 16), upload(engine, zeros, 16), upload(engine, &offset, 8), upload(engine, &length, 8),
        upload(engine, zeros, LONG), upload(engine, zeros, 16), upload(engine, &status, 1),
    };
    lockstep_device_table table = {
        .size = sizeof table, .messages = 1, .key_len = 16, .longest = LONG,
        .keys = {buffers[0], 0, 16}, .states = {buffers[1], 0, 16}, .offsets = {buffers[2], 0, 8},
        .lengths = {buffers[3], 0, 8}, .from = {buffers[4], 0, LONG}, .to = {buffers[4], 0, LONG},
        .tags = {buffers[5], 0, 16}, .status = {buffers[6], 0, 1},
    };
    OK(lockstep_device_table_aead(engine, LOCKSTEP_AEAD_GCM, LOCKSTEP_ENCRYPT, &table, NULL, &completion));
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        lockstep_device_buffer_free(buffers[i]);
    lockstep_engine_free(engine);
    OK(lockstep_completion_wait(completion));
    free(zeros);
}

static void tables(const lockstep_engine *engine, const lockstep_engine *cpu)
{
    uint8_t keys[COUNT][32], states[COUNT][16], data[COUNT][64], sealed[COUNT][64], tags[COUNT][16], status[COUNT];
    uint64_t offsets[COUNT] = {0, 64, 128}, lengths[COUNT] = {64, 0, 33};
    count_up(keys[0], sizeof keys, 0, 1);
    count_up(states[0], sizeof states, 9, 1);
    count_up(data[0], sizeof data, 3, 7);
    memset(tags, 0, sizeof tags);
    memset(status, 99, sizeof status);
    lockstep_device_buffer *buffers[] = {
        upload(engine, keys, sizeof keys), upload(engine, states, sizeof states), upload(engine, offsets, sizeof offsets),
        upload(engine, lengths, sizeof lengths), upload(engine, data, sizeof data), upload(engine, tags, sizeof tags),
        upload(engine, status, sizeof status),
    };
    lockstep_device_table table = {
        .size = sizeof table, .messages = COUNT, .key_len = 32, .longest = 64,
        .keys = {buffers[0], 0, sizeof keys}, .states = {buffers[1], 0, sizeof states},
        .offsets = {buffers[2], 0, sizeof offsets}, .lengths = {buffers[3], 0, sizeof lengths},
        .from = {buffers[4], 0, sizeof data}, .to = {buffers[4], 0, sizeof data},
        .tags = {buffers[5], 0, sizeof tags}, .status = {buffers[6], 0, sizeof status},
    };
    lockstep_completion *completion;
    pthread_t thread;
    OK(lockstep_device_table_aead(engine, LOCKSTEP_AEAD_GCM, LOCKSTEP_ENCRYPT, &table, NULL, &completion));
    CHECK(pthread_create(&thread, NULL, wait_elsewhere, completion) == 0 && pthread_join(thread, NULL) == 0);
    OK(lockstep_completion_wait(completion));
    OK(lockstep_device_download(buffers[4], 0, sealed[0], sizeof sealed, NULL));
    OK(lockstep_device_download(buffers[5], 0, tags[0], sizeof tags, NULL));
    OK(lockstep_device_download(buffers[6], 0, status, sizeof status, NULL));
    for (size_t i = 0; i < COUNT; i++) {
        lockstep_key *key;
        uint8_t expected[64], tag[16];
        OK(lockstep_key_new(LOCKSTEP_AEAD_GCM, keys[i], 32, &key));
        OK(lockstep_aead_seal(cpu, key, states[i], 12, NULL, 0, data[i], lengths[i], expected, tag, 16));
        CHECK(memcmp(expected, sealed[i], lengths[i]) == 0 && memcmp(tag, tags[i], 16) == 0);
        CHECK(status[i] == LOCKSTEP_STATUS_DONE);
        lockstep_key_free(key);
    }
    tags[0][5] ^= 1;
    OK(lockstep_device_upload(buffers[5], 0, tags[0], sizeof tags, NULL));
    OK(lockstep_device_table_aead(engine, LOCKSTEP_AEAD_GCM, LOCKSTEP_DECRYPT, &table, NULL, NULL));
    OK(lockstep_device_download(buffers[4], 0, sealed[0], sizeof sealed, NULL));
    OK(lockstep_device_download(buffers[6], 0, status, sizeof status, NULL));
    CHECK(status[0] == LOCKSTEP_STATUS_AUTHENTICATION_FAILED && is_all(sealed[0], 64, 0));
    CHECK(status[2] == LOCKSTEP_STATUS_DONE && memcmp(sealed[2], data[2], 33) == 0);
    OK(lockstep_device_table_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, &table, NULL, NULL));
    table.keys.len = 31;
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_device_table_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, &table, NULL, NULL));
    table.key_len = 20;
    FAILS(LOCKSTEP_ERROR_ARGUMENT,
          lockstep_device_table_cipher(engine, LOCKSTEP_CIPHER_CTR, LOCKSTEP_ENCRYPT, &table, NULL, &completion));
    CHECK(completion == NULL);
    FAILS(LOCKSTEP_ERROR_UNSUPPORTED,
          lockstep_device_table_aead(engine, LOCKSTEP_AEAD_CCM, LOCKSTEP_ENCRYPT, &table, NULL, NULL));
    table.key_len = 32;
    table.status.buffer = NULL;
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_device_table_aead(engine, LOCKSTEP_AEAD_GCM, LOCKSTEP_ENCRYPT, &table, NULL, NULL));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_completion_wait(NULL));
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        lockstep_device_buffer_free(buffers[i]);
}

/* In a child process, an engine with a device that the parent has opened fails, but a new engine works. */
static void forked(lockstep_engine *engine)
{
    lockstep_device_buffer *buffer = upload(engine, "0123", 4);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        lockstep_key *key = new_key(LOCKSTEP_AEAD_GCM, 32);
        uint8_t nonce[12] = {0}, data[16] = {0}, tag[16];
        lockstep_engine_options options = {sizeof options, "cpu", NULL, 1, 0};
        lockstep_engine *own;
        lockstep_device_buffer *none;
        FAILS(LOCKSTEP_ERROR_FORKED, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 16, data, tag, 16));
        FAILS(LOCKSTEP_ERROR_FORKED, lockstep_device_allocate(engine, NULL, 16, &none));
        /* If the encryption is refused, the plaintext is not copied to the output. */
        lockstep_cipher_key *cbc = new_cipher_key(LOCKSTEP_CIPHER_CBC, 16);
        uint8_t out[16];
        memset(data, 5, 16);
        memset(out, 9, 16);
        FAILS(LOCKSTEP_ERROR_FORKED, lockstep_cbc_cts_encrypt(engine, LOCKSTEP_CTS_CS1, cbc, tag, data, 16, out));
        CHECK(is_all(out, 16, 9));
        lockstep_device_buffer_free(buffer);
        lockstep_engine_free(engine);
        OK(lockstep_engine_new(&options, &own));
        OK(lockstep_aead_seal(own, key, nonce, 12, NULL, 0, data, 16, data, tag, 16));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lockstep_device_buffer_free(buffer);
}

void test_device(const char *device, const char *folder)
{
    lockstep_engine_options options = {sizeof options, device, NULL, 2, LOCKSTEP_VERIFY_SAMPLE};
    lockstep_engine *engine, *cpu;
    if (lockstep_engine_new(&options, &engine) == LOCKSTEP_ERROR_UNKNOWN_DEVICE) {
        printf("NOT TESTED: %s\n", lockstep_last_error_message());
        return;
    }
    CHECK(engine != NULL);
    options.device = "cpu";
    OK(lockstep_engine_new(&options, &cpu));
    lockstep_device_buffer *none;
    FAILS(LOCKSTEP_ERROR_UNKNOWN_DEVICE, lockstep_device_allocate(cpu, NULL, 10, &none));
    FAILS(LOCKSTEP_ERROR_UNKNOWN_DEVICE, lockstep_device_allocate(engine, "abacus", 10, &none));
    FAILS(LOCKSTEP_ERROR_OUT_OF_REACH, lockstep_device_allocate(cpu, "cpu", 10, &none));
    modes(engine, cpu);
    wrapped(engine);
    tables(engine, cpu);
    test_parquet_device(engine, folder);
    early_free(device);
    forked(engine);
    lockstep_engine_free(engine);
    lockstep_engine_free(cpu);
    puts("passed");
}
