/* Tests of wrong arguments, of overlapping memory, of options of other versions, and of calls after a fork. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static void engines(void)
{
    lockstep_engine *engine;
    lockstep_engine_options options = {sizeof options, "cpu:abacus", NULL, 0, 0};
    FAILS(LOCKSTEP_ERROR_UNKNOWN_DEVICE, lockstep_engine_new(&options, &engine));
    CHECK(engine == NULL && strstr(lockstep_last_error_message(), "abacus") != NULL);
    options.device = "cpu";
    options.kernel = "cpu/abacus";
    FAILS(LOCKSTEP_ERROR_UNKNOWN_KERNEL, lockstep_engine_new(&options, &engine));
    options.kernel = NULL;
    options.threads = 5000;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&options, &engine));
    options.threads = 1;
    options.verify = -1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&options, &engine));
    options.verify = 9;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&options, &engine));
    CHECK(strstr(lockstep_last_error_message(), "9 is not a value of `verify`: use a number LOCKSTEP_VERIFY_") != NULL);
    options.verify = LOCKSTEP_VERIFY_OFF;
    options.device = "\xff\xfe";
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&options, &engine));
    options.device = "cpu";
    options.size = 3;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&options, &engine));
    CHECK(strstr(lockstep_last_error_message(), "sizeof(lockstep_engine_options)") != NULL);
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_engine_new(&options, NULL));
    /* The structure is that of an older version, which has only `size` and `device`. The member `verify` is therefore not read. */
    options.verify = 9;
    options.size = offsetof(lockstep_engine_options, kernel);
    OK(lockstep_engine_new(&options, &engine));
    lockstep_engine_free(engine);
    /* The structure is that of a newer version. It is accepted if the member that this library does not know is 0. */
    struct {
        lockstep_engine_options known;
        uint64_t unknown;
    } newer = {{sizeof newer, "cpu", NULL, 0, 0}, 0};
    OK(lockstep_engine_new(&newer.known, &engine));
    lockstep_engine_free(engine);
    newer.unknown = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_engine_new(&newer.known, &engine));
    lockstep_engine_free(NULL);
    lockstep_key_free(NULL);
    lockstep_cipher_key_free(NULL);
    lockstep_hctr2_key_free(NULL);
    lockstep_file_key_free(NULL);
    lockstep_reader_free(NULL);
    lockstep_parquet_free(NULL);
    lockstep_device_buffer_free(NULL);
}

static void keys(void)
{
    lockstep_key *key;
    lockstep_cipher_key *cipher;
    uint8_t bytes[64] = {0};
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_key_new(LOCKSTEP_AEAD_GCM, bytes, 17, &key));
    CHECK(key == NULL);
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_key_new(LOCKSTEP_AEAD_GCM, NULL, 0, &key));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_key_new(LOCKSTEP_AEAD_GCM, NULL, 16, &key));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_key_new(LOCKSTEP_AEAD_GCM, bytes, 16, NULL));
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_key_new(LOCKSTEP_AEAD_GCM, bytes, SIZE_MAX, &key));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_key_new(0, bytes, 16, &key));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_key_new(-1, bytes, 16, &key));
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_cipher_key_new(LOCKSTEP_CIPHER_XTS, bytes, 64, &cipher));
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_cipher_key_new(LOCKSTEP_CIPHER_CTR, bytes, 64, &cipher));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_cipher_key_new(10, bytes, 16, &cipher));
}

static void calls(const lockstep_engine *engine)
{
    lockstep_key *key = new_key(LOCKSTEP_AEAD_GCM, 16);
    lockstep_cipher_key *cipher = new_cipher_key(LOCKSTEP_CIPHER_CTR, 16);
    uint8_t memory[256], before[256], *nonce = memory, *data = memory + 64, *out = memory + 128, *tag = memory + 200;
    count_up(memory, sizeof memory, 0, 1);
    memcpy(before, memory, sizeof memory);
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(NULL, key, nonce, 12, NULL, 0, data, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, NULL, nonce, 12, NULL, 0, data, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, key, NULL, 12, NULL, 0, data, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, key, nonce, 12, NULL, 5, data, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, NULL, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, NULL, tag, 16));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, out, NULL, 16));
    FAILS(LOCKSTEP_ERROR_TAG, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, out, tag, 3));
    FAILS(LOCKSTEP_ERROR_TAG, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, out, NULL, 0));
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, SIZE_MAX / 2 + 9, data, tag, 16));
    /* Calls are refused if the input and the output overlap in part, or if an output overlaps the nonce, the associated data or the tag. */
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, data + 1, tag, 16));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, data - 1, tag, 16));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, nonce + 11, tag, 16));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal(engine, key, nonce, 12, out, 9, data, 32, out, tag, 16));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, 32, out, out + 31, 16));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_open(engine, key, nonce, 12, NULL, 0, data, 32, out + 16, 16, out));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_CTR, cipher, data, data, 32, out));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_CTR, cipher, out + 31, data, 32, out));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_cmac(engine, cipher, data, 32, data + 20));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_CTR, cipher, NULL, data, 32, out));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_cipher_encrypt(engine, 99, cipher, nonce, data, 32, out));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal_batch(engine, NULL, 1));
    lockstep_message messages[2] = {
        {.key = key, .nonce = nonce, .nonce_len = 12, .input = data, .output = out, .len = 32, .tag = tag, .tag_len = 16},
        {.key = key, .nonce = nonce, .nonce_len = 12, .input = data, .output = out + 31, .len = 8, .tag = tag + 20, .tag_len = 16},
    };
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal_batch(engine, messages, 2));
    messages[1].output = (uint8_t *)&messages[0].nonce;
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_aead_seal_batch(engine, messages, 2));
    messages[1].output = NULL;
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_seal_batch(engine, messages, 2));
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_aead_seal_batch(engine, messages, SIZE_MAX));
    FAILS(LOCKSTEP_ERROR_NONCE, lockstep_aead_open(engine, key, nonce, 0, NULL, 0, data, 32, tag, 16, data));
    FAILS(LOCKSTEP_ERROR_TAG, lockstep_aead_open(engine, key, nonce, 12, NULL, 0, data, 32, tag, 3, data));
    /* The refused calls have not changed any memory. */
    CHECK(memcmp(memory, before, sizeof memory) == 0);
    lockstep_key_free(key);
    lockstep_cipher_key_free(cipher);
}

static void texts(void)
{
    for (int code = LOCKSTEP_OK; code <= LOCKSTEP_ERROR_MISSING_KEY; code++)
        CHECK(strcmp(lockstep_strerror(code), lockstep_strerror(-1)) != 0);
    CHECK(strcmp(lockstep_strerror(LOCKSTEP_ERROR_MISSING_KEY + 1), lockstep_strerror(-1)) == 0);
    CHECK(strcmp(lockstep_strerror(LOCKSTEP_OK), "success") == 0);
    /* Structures in arrays have no member for their size, so the size must never change. */
    CHECK(sizeof(lockstep_message) == 11 * sizeof(void *) && sizeof(lockstep_cipher_message) == 5 * sizeof(void *));
    /* Options have no padding after the last member, because a later version would read the padding as a member. */
    CHECK(offsetof(lockstep_engine_options, verify) + sizeof(int) == sizeof(lockstep_engine_options));
    CHECK(offsetof(lockstep_stream_options, reserved) + sizeof(uint32_t) == sizeof(lockstep_stream_options));
    CHECK(offsetof(lockstep_file_options, reserved) + sizeof(uint32_t) == sizeof(lockstep_file_options));
    CHECK(offsetof(lockstep_device_table, status) + sizeof(lockstep_device_range) == sizeof(lockstep_device_table));
    CHECK(offsetof(lockstep_parquet_read_options, reserved) + sizeof(uint32_t) == sizeof(lockstep_parquet_read_options));
    CHECK(offsetof(lockstep_parquet_policy, reserved) + sizeof(uint32_t) == sizeof(lockstep_parquet_policy));
    CHECK(sizeof(lockstep_parquet_protection) == 3 * sizeof(void *) + 24);
    CHECK(sizeof(lockstep_parquet_module) == sizeof(lockstep_parquet_protection) + 5 * sizeof(void *));
    CHECK(sizeof(lockstep_parquet_device_module) == sizeof(lockstep_parquet_protection) + 7 * sizeof(void *));
    CHECK(sizeof(lockstep_parquet_column) == 5 * sizeof(void *));
    CHECK(sizeof(lockstep_mac_message) == 4 * sizeof(void *) && sizeof(lockstep_bytes) == 2 * sizeof(void *));
}

static ptrdiff_t no_bytes(void *user, uint8_t *buffer, size_t len)
{
    (void)user, (void)buffer, (void)len;
    return 0;
}

static ptrdiff_t all_bytes(void *user, const uint8_t *buffer, size_t len)
{
    (void)user, (void)buffer;
    return (ptrdiff_t)len;
}

/* Wrong options of calls other than lockstep_engine_new, and wrong paths. */
static void options_and_paths(const lockstep_engine *engine, const char *folder)
{
    lockstep_file_options options = {1, NULL, NULL, 0, 0, 0, 0, 0, 0};
    lockstep_stream_options stream = {sizeof stream, NULL, NULL, 0, 1};
    lockstep_file_key *key;
    lockstep_reader *reader;
    size_t got;
    uint64_t len;
    OK(lockstep_file_key_generate(256, &key));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_encrypt_file(engine, key, NULL, 0, folder, folder, &options, NULL));
    /* Reserved members must be zero, because a later version may give them a meaning. */
    options.size = sizeof options;
    options.reserved = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_encrypt_file(engine, key, NULL, 0, folder, folder, &options, NULL));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_encrypt_stream(engine, key, NULL, 0, no_bytes, NULL, all_bytes, NULL, &stream, NULL));
    stream.reserved = 0;
    OK(lockstep_encrypt_stream(engine, key, NULL, 0, no_bytes, NULL, all_bytes, NULL, &stream, NULL));
    FAILS(LOCKSTEP_ERROR_FILE, lockstep_encrypt_file(engine, key, NULL, 0, folder, "/tmp", NULL, NULL));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_encrypt_file(engine, key, NULL, 0, NULL, folder, NULL, NULL));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_encrypt_file(engine, NULL, NULL, 0, folder, folder, NULL, NULL));
    FAILS(LOCKSTEP_ERROR_FILE, lockstep_reader_open_file(engine, key, NULL, 0, folder, &reader));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_reader_open(engine, key, NULL, 0, NULL, NULL, 100, &reader));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_reader_read(NULL, 0, NULL, 0, &got));
    FAILS(LOCKSTEP_ERROR_TRUNCATED, lockstep_opened_len(55, &len));
    FAILS(LOCKSTEP_ERROR_TOO_LONG, lockstep_sealed_len(UINT64_MAX, &len));
    CHECK(lockstep_reader_len(NULL) == 0 && lockstep_device_buffer_len(NULL) == 0);
    lockstep_file_key_free(key);
}

void test_misuse(const lockstep_engine *engine, const char *folder)
{
    engines();
    keys();
    calls(engine);
    texts();
    options_and_paths(engine, folder);
}

/* A child process may use the objects of its parent on several threads. It may use the engine of its parent if the engine uses only
 * the CPU. */
void test_fork(const lockstep_engine *engine)
{
    enum { LEN = 3 << 20 };
    lockstep_key *key = new_key(LOCKSTEP_AEAD_GCM, 32);
    uint8_t nonce[12] = {1}, tags[2][16], *data = calloc(2, LEN), *out = calloc(2, LEN);
    lockstep_message messages[2];
    for (int i = 0; i < 2; i++)
        messages[i] = (lockstep_message){.key = key, .nonce = nonce, .nonce_len = 12, .input = data + i * LEN,
                                         .output = out + i * LEN, .len = LEN, .tag = tags[i], .tag_len = 16};
    OK(lockstep_aead_seal_batch(engine, messages, 2));
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint8_t again[16];
        OK(lockstep_aead_seal(engine, key, nonce, 12, NULL, 0, data, LEN, data, again, 16));
        CHECK(memcmp(again, tags[0], 16) == 0 && memcmp(data, out, LEN) == 0);
        OK(lockstep_aead_open_batch(engine, (messages[0].input = out, messages[1].input = out + LEN, messages), 2));
        /* The child starts another program instead of calling `_exit`. At `_exit`, valgrind would search for leaks while threads of the
         * batch have finished their work but have not ended yet. */
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lockstep_key_free(key);
    free(data);
    free(out);
}
