/* Tests of the file format: encryption of buffers, streams and files, random access, and key files. */
#include "check.h"

/* The data are longer than a piece of the pipeline, so that progress is reported before the end. */
enum { LEN = 600 * 1024, CONTEXT = 7 };

static const uint8_t context[CONTEXT] = {'c', 'o', 'n', 't', 'e', 'x', 't'};

struct memory {
    uint8_t *bytes;
    size_t len, at;
    /* The number of calls that succeed before a call fails. If it is negative, no call fails. */
    int calls;
};

static ptrdiff_t read_memory(void *user, uint8_t *buffer, size_t len)
{
    struct memory *memory = user;
    if (memory->calls-- == 0)
        return -5;
    if (len > memory->len - memory->at)
        len = memory->len - memory->at;
    /* The callback returns fewer bytes than requested, which is permitted. */
    if (len > 10007)
        len = 10007;
    memcpy(buffer, memory->bytes + memory->at, len);
    memory->at += len;
    return (ptrdiff_t)len;
}

static ptrdiff_t write_memory(void *user, const uint8_t *buffer, size_t len)
{
    struct memory *memory = user;
    if (memory->calls-- == 0)
        return -6;
    if (len > 10009)
        len = 10009;
    if (len > memory->len - memory->at)
        return -1;
    memcpy(memory->bytes + memory->at, buffer, len);
    memory->at += len;
    return (ptrdiff_t)len;
}

static ptrdiff_t too_many(void *user, uint8_t *buffer, size_t len)
{
    (void)user;
    (void)buffer;
    return (ptrdiff_t)len + 1;
}

static int read_at_memory(void *user, uint64_t offset, uint8_t *buffer, size_t len)
{
    struct memory *memory = user;
    if (offset > memory->len || len > memory->len - offset)
        return 1;
    memcpy(buffer, memory->bytes + offset, len);
    return 0;
}

static int count_progress(void *user, uint64_t bytes)
{
    uint64_t *last = user;
    CHECK(bytes >= *last);
    *last = bytes;
    return 0;
}

static int cancel(void *user, uint64_t bytes)
{
    (void)user;
    (void)bytes;
    return 1;
}

static void buffers(const lockstep_engine *engine, const lockstep_file_key *key, const uint8_t *data, uint8_t *sealed,
                    size_t *sealed_len)
{
    uint64_t needed;
    size_t len;
    uint8_t small[20];
    lockstep_file_key *other;
    OK(lockstep_sealed_len(LEN, &needed));
    CHECK(needed == 56 + LEN + 16 * (LEN / 16384 + 1));
    OK(lockstep_seal(engine, key, context, CONTEXT, data, LEN, sealed, needed, sealed_len));
    CHECK(*sealed_len == needed);
    OK(lockstep_opened_len(needed, &needed));
    CHECK(needed == LEN);
    uint8_t *opened = malloc(LEN);
    OK(lockstep_open(engine, key, context, CONTEXT, sealed, *sealed_len, opened, LEN, &len));
    CHECK(len == LEN && memcmp(opened, data, LEN) == 0);
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_open(engine, key, context, 3, sealed, *sealed_len, opened, LEN, &len));
    OK(lockstep_file_key_generate(256, &other));
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_open(engine, other, context, 7, sealed, *sealed_len, opened, LEN, &len));
    lockstep_file_key_free(other);
    memset(opened, 3, LEN);
    sealed[300000] ^= 1;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_open(engine, key, context, 7, sealed, *sealed_len, opened, LEN, &len));
    CHECK(is_all_of(opened, LEN, 0, 3));
    sealed[300000] ^= 1;
    memset(opened, 3, LEN);
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_open(engine, key, context, 7, sealed, *sealed_len - 16400, opened, LEN, &len));
    CHECK(is_all_of(opened, LEN, 0, 3) && is_all(opened, 16384, 0));
    memset(opened, 3, LEN);
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_open(engine, key, opened, 7, sealed, *sealed_len, opened, LEN, &len));
    CHECK(is_all(opened, LEN, 3));
    FAILS(LOCKSTEP_ERROR_TRUNCATED, lockstep_open(engine, key, context, 7, sealed, 50, opened, LEN, &len));
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_open(engine, key, context, 7, sealed, *sealed_len, opened, LEN - 1, &len));
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_seal(engine, key, NULL, 0, data, 1, small, sizeof small, &len));
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_open(engine, key, context, 7, sealed, *sealed_len, sealed, LEN, &len));
    free(opened);
}

static void streams(const lockstep_engine *engine, const lockstep_file_key *key, uint8_t *data, uint8_t *sealed,
                    size_t sealed_len)
{
    uint8_t *out = malloc(sealed_len);
    uint64_t progress = 0;
    lockstep_summary summary;
    lockstep_stream_options options = {sizeof options, count_progress, &progress, 0, 0};
    for (unsigned threads = 0; threads < 3; threads++) {
        struct memory from = {data, LEN, 0, -1}, to = {out, sealed_len, 0, -1};
        options.threads = threads;
        progress = 0;
        OK(lockstep_encrypt_stream(engine, key, context, 7, read_memory, &from, write_memory, &to, &options, &summary));
        CHECK(summary.plaintext_len == LEN && summary.ciphertext_len == sealed_len && to.at == sealed_len);
        CHECK(progress == LEN);
        from = (struct memory){out, sealed_len, 0, -1};
        to = (struct memory){sealed, sealed_len, 0, -1};
        OK(lockstep_decrypt_stream(engine, key, context, 7, read_memory, &from, write_memory, &to, NULL, NULL));
        CHECK(to.at == LEN && memcmp(sealed, data, LEN) == 0);
    }
    struct memory from = {data, LEN, 0, 20}, to = {out, sealed_len, 0, -1};
    FAILS(LOCKSTEP_ERROR_READ,
          lockstep_encrypt_stream(engine, key, NULL, 0, read_memory, &from, write_memory, &to, NULL, NULL));
    CHECK(strstr(lockstep_last_error_message(), "-5") != NULL);
    from = (struct memory){data, LEN, 0, -1};
    to = (struct memory){out, sealed_len, 0, 3};
    FAILS(LOCKSTEP_ERROR_WRITE,
          lockstep_encrypt_stream(engine, key, NULL, 0, read_memory, &from, write_memory, &to, NULL, NULL));
    CHECK(strstr(lockstep_last_error_message(), "-6") != NULL);
    FAILS(LOCKSTEP_ERROR_READ,
          lockstep_encrypt_stream(engine, key, NULL, 0, too_many, NULL, write_memory, &to, NULL, NULL));
    from = (struct memory){data, LEN, 0, -1};
    to = (struct memory){out, sealed_len, 0, -1};
    options.progress = cancel;
    options.threads = 1;
    FAILS(LOCKSTEP_ERROR_CANCELLED,
          lockstep_encrypt_stream(engine, key, NULL, 0, read_memory, &from, write_memory, &to, &options, NULL));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_encrypt_stream(engine, key, NULL, 0, NULL, &from, write_memory, &to, NULL, NULL));
    free(out);
}

/* The data of the callbacks that call the library. */
struct nested {
    const lockstep_engine *engine;
    const lockstep_file_key *key;
    lockstep_reader *reader;
    struct memory memory;
    int depth;
};

/* Makes a call of the library that fails, and two calls that succeed. Returns 0 if the results are right. */
static int seal_in_callback(const struct nested *nested)
{
    uint8_t plain[100] = {1}, sealed[172];
    size_t len;
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_seal(nested->engine, nested->key, NULL, 0, plain, 100, sealed, 171, &len));
    OK(lockstep_seal(nested->engine, nested->key, NULL, 0, plain, 100, sealed, 172, &len));
    OK(lockstep_open(nested->engine, nested->key, NULL, 0, sealed, len, plain, 100, &len));
    return len == 100 && plain[0] == 1 ? 0 : 1;
}

static int progress_and_seal(void *user, uint64_t bytes)
{
    (void)bytes;
    return seal_in_callback(user);
}

static ptrdiff_t read_and_seal(void *user, uint8_t *buffer, size_t len)
{
    struct nested *nested = user;
    return seal_in_callback(nested) == 0 ? read_memory(&nested->memory, buffer, len) : -1;
}

static int read_at_and_read(void *user, uint64_t offset, uint8_t *buffer, size_t len)
{
    struct nested *nested = user;
    uint8_t part[10];
    size_t got;
    if (nested->reader != NULL && nested->depth++ == 0)
        OK(lockstep_reader_read(nested->reader, 5, part, 10, &got));
    return read_at_memory(&nested->memory, offset, buffer, len);
}

/* A callback may call the library, even with the objects of the call that runs the callback. */
static void calls_in_callbacks(const lockstep_engine *engine, const lockstep_file_key *key, uint8_t *data, uint8_t *sealed,
                               size_t sealed_len)
{
    struct nested nested = {engine, key, NULL, {data, LEN, 0, -1}, 0};
    struct memory to = {sealed, sealed_len, 0, -1};
    lockstep_stream_options options = {sizeof options, progress_and_seal, &nested, 1, 0};
    uint8_t part[100];
    size_t got;
    OK(lockstep_encrypt_stream(engine, key, NULL, 0, read_and_seal, &nested, write_memory, &to, &options, NULL));
    nested.memory = (struct memory){sealed, sealed_len, 0, -1};
    OK(lockstep_reader_open(engine, key, NULL, 0, read_at_and_read, &nested, sealed_len, &nested.reader));
    OK(lockstep_reader_read(nested.reader, LEN - 100, part, 100, &got));
    CHECK(nested.depth > 0 && memcmp(part, data + LEN - 100, 100) == 0);
    lockstep_reader_free(nested.reader);
}

static void write_file(const char *path, const uint8_t *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

static int exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

static void files(const lockstep_engine *engine, const lockstep_file_key *key, const uint8_t *data, const char *folder)
{
    char plain[1024], secret[1024], back[1024];
    lockstep_file_options options = {sizeof options, NULL, NULL, 0, 0, 0, 0, 0, 0};
    lockstep_summary summary;
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    snprintf(back, sizeof back, "%s/back", folder);
    write_file(plain, data, LEN);
    options.progress = cancel;
    options.threads = 1;
    FAILS(LOCKSTEP_ERROR_CANCELLED, lockstep_encrypt_file(engine, key, context, 7, plain, secret, &options, NULL));
    CHECK(!exists(secret));
    options.progress = NULL;
    options.threads = 0;
    OK(lockstep_encrypt_file(engine, key, context, 7, plain, secret, &options, &summary));
    CHECK(summary.plaintext_len == LEN);
    FAILS(LOCKSTEP_ERROR_EXISTS, lockstep_encrypt_file(engine, key, context, 7, plain, secret, &options, NULL));
    FAILS(LOCKSTEP_ERROR_SAME_FILE, lockstep_encrypt_file(engine, key, context, 7, plain, plain, &options, NULL));
    FAILS(LOCKSTEP_ERROR_FILE, lockstep_encrypt_file(engine, key, context, 7, "/no/such/file", back, NULL, NULL));
    CHECK(strstr(lockstep_last_error_message(), "/no/such/file") != NULL);
    OK(lockstep_decrypt_file(engine, key, context, 7, secret, back, NULL, NULL));
    options.force = 1;
    options.sync = 1;
    OK(lockstep_decrypt_file(engine, key, context, 7, secret, back, &options, &summary));
    CHECK(summary.plaintext_len == LEN);
    CHECK(remove(back) == 0);
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_decrypt_file(engine, key, NULL, 0, secret, back, NULL, NULL));
    CHECK(!exists(back));

    lockstep_reader *reader;
    uint8_t part[20000];
    size_t got;
    OK(lockstep_reader_open_file(engine, key, context, 7, secret, &reader));
    CHECK(lockstep_reader_len(reader) == LEN);
    OK(lockstep_reader_read(reader, 16380, part, sizeof part, &got));
    CHECK(got == sizeof part && memcmp(part, data + 16380, got) == 0);
    OK(lockstep_reader_read(reader, LEN - 10, part, sizeof part, &got));
    CHECK(got == 10 && memcmp(part, data + LEN - 10, 10) == 0);
    OK(lockstep_reader_read(reader, UINT64_MAX, part, sizeof part, &got));
    CHECK(got == 0);
    lockstep_reader_free(reader);
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_reader_open_file(engine, key, NULL, 0, secret, &reader));
    CHECK(reader == NULL);

    /* The file is truncated within its second chunk. No output appears, or with `partial` the first chunk, which is verified. */
    FILE *whole = fopen(secret, "rb");
    CHECK(whole != NULL && fread(part, 1, 17000, whole) == 17000 && fclose(whole) == 0);
    write_file(secret, part, 17000);
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_decrypt_file(engine, key, context, 7, secret, back, &options, NULL));
    CHECK(!exists(back));
    options.partial = 1;
    options.no_holes = 1;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_decrypt_file(engine, key, context, 7, secret, back, &options, &summary));
    CHECK(summary.plaintext_len == 16384);
    whole = fopen(back, "rb");
    CHECK(whole != NULL && fread(part, 1, sizeof part, whole) == 16384 && fclose(whole) == 0);
    CHECK(memcmp(part, data, 16384) == 0 && remove(back) == 0);
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_decrypt_file(engine, key, NULL, 0, secret, back, &options, &summary));
    CHECK(summary.plaintext_len == 0 && !exists(back));

    /* If a file has the format of another program, the message names this program. */
    uint8_t foreign[100] = "Salted__";
    write_file(plain, foreign, sizeof foreign);
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_decrypt_file(engine, key, context, 7, plain, back, NULL, NULL));
    CHECK(strstr(lockstep_last_error_message(), "openssl enc") != NULL && !exists(back));
    FAILS(LOCKSTEP_ERROR_WRONG_KEY, lockstep_reader_open_file(engine, key, context, 7, plain, &reader));
    CHECK(strstr(lockstep_last_error_message(), "openssl enc") != NULL);

    /* The key file is in UTF-16, because PowerShell writes such files. */
    static const char text[] = "lockstep-key-128 000102030405060708090a0b0c0d0e0f\r\n";
    uint8_t utf16[2 * sizeof text] = {0xff, 0xfe}, bytes[16];
    lockstep_file_key *read;
    for (size_t i = 0; i < sizeof text - 1; i++)
        utf16[2 + 2 * i] = (uint8_t)text[i];
    write_file(plain, utf16, sizeof utf16);
    OK(lockstep_file_key_read(plain, &read));
    OK(lockstep_file_key_bytes(read, bytes, sizeof bytes, &got));
    CHECK(got == 16 && bytes[0] == 0 && bytes[15] == 15);
    lockstep_file_key_free(read);
}

static void reader_of_callback(const lockstep_engine *engine, const lockstep_file_key *key, const uint8_t *data,
                               uint8_t *sealed, size_t sealed_len)
{
    struct memory memory = {sealed, sealed_len, 0, -1};
    lockstep_reader *reader;
    uint8_t part[100];
    size_t got;
    OK(lockstep_reader_open(engine, key, context, 7, read_at_memory, &memory, sealed_len, &reader));
    OK(lockstep_reader_read(reader, 40000, part, 100, &got));
    CHECK(got == 100 && memcmp(part, data + 40000, 100) == 0);
    sealed[56 + 2 * 16400] ^= 1;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_reader_read(reader, 40000, part, 100, &got));
    CHECK(is_all(part, 100, 0));
    memory.len = 100;
    FAILS(LOCKSTEP_ERROR_READ, lockstep_reader_read(reader, 40000, part, 100, &got));
    lockstep_reader_free(reader);
    FAILS(LOCKSTEP_ERROR_TRUNCATED, lockstep_reader_open(engine, key, context, 7, read_at_memory, &memory, 20, &reader));
}

static void key_files(const char *folder)
{
    char path[1024];
    lockstep_file_key *key, *again;
    uint8_t bytes[32], read[32];
    size_t len;
    snprintf(path, sizeof path, "%s/key", folder);
    OK(lockstep_file_key_generate(128, &key));
    OK(lockstep_file_key_bytes(key, bytes, 32, &len));
    CHECK(len == 16);
    OK(lockstep_file_key_write(path, key));
    FAILS(LOCKSTEP_ERROR_EXISTS, lockstep_file_key_write(path, key));
    OK(lockstep_file_key_read(path, &again));
    OK(lockstep_file_key_bytes(again, read, 16, &len));
    CHECK(memcmp(bytes, read, 16) == 0);
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_file_key_bytes(again, read, 15, &len));
    lockstep_file_key_free(key);
    lockstep_file_key_free(again);
    write_file(path, bytes, 16);
    FAILS(LOCKSTEP_ERROR_KEY_FILE, lockstep_file_key_read(path, &again));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_file_key_generate(192, &again));
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_file_key_new(bytes, 24, &again));
}

void test_format(const lockstep_engine *engine, const char *folder)
{
    lockstep_file_key *key;
    uint8_t bytes[32], *data = malloc(LEN), *sealed = malloc(LEN + 1000), *copy = malloc(LEN + 1000);
    size_t sealed_len;
    count_up(bytes, 32, 3, 3);
    count_up(data, LEN, 0, 13);
    OK(lockstep_file_key_new(bytes, 32, &key));
    buffers(engine, key, data, sealed, &sealed_len);
    streams(engine, key, data, copy, sealed_len);
    calls_in_callbacks(engine, key, data, copy, sealed_len);
    reader_of_callback(engine, key, data, sealed, sealed_len);
    files(engine, key, data, folder);
    key_files(folder);
    lockstep_file_key_free(key);
    free(copy);
    free(sealed);
    free(data);
}
