/* Tests structures of options with every value of `size`. The size of an older or of a newer header is accepted. A size that ends
 * within a member is refused. */
#include "check.h"

/* The offsets of the members. At each of these offsets, the member before ends. */
static const size_t engine_options_ends[] = {
    offsetof(lockstep_engine_options, device), offsetof(lockstep_engine_options, kernel),
    offsetof(lockstep_engine_options, threads), offsetof(lockstep_engine_options, verify),
};
static const size_t file_options_ends[] = {
    offsetof(lockstep_file_options, progress), offsetof(lockstep_file_options, progress_user),
    offsetof(lockstep_file_options, threads), offsetof(lockstep_file_options, force),
    offsetof(lockstep_file_options, sync), offsetof(lockstep_file_options, no_holes),
    offsetof(lockstep_file_options, partial), offsetof(lockstep_file_options, reserved),
};
static const size_t stream_options_ends[] = {
    offsetof(lockstep_stream_options, progress), offsetof(lockstep_stream_options, progress_user),
    offsetof(lockstep_stream_options, threads), offsetof(lockstep_stream_options, reserved),
};
static const size_t device_table_ends[] = {
    offsetof(lockstep_device_table, messages), offsetof(lockstep_device_table, key_len),
    offsetof(lockstep_device_table, longest), offsetof(lockstep_device_table, keys),
    offsetof(lockstep_device_table, states), offsetof(lockstep_device_table, offsets),
    offsetof(lockstep_device_table, lengths), offsetof(lockstep_device_table, from),
    offsetof(lockstep_device_table, to), offsetof(lockstep_device_table, tags),
    offsetof(lockstep_device_table, status),
};
static const size_t parquet_read_options_ends[] = {
    offsetof(lockstep_parquet_read_options, footer_key), offsetof(lockstep_parquet_read_options, footer_key_len),
    offsetof(lockstep_parquet_read_options, columns), offsetof(lockstep_parquet_read_options, column_count),
    offsetof(lockstep_parquet_read_options, find_key), offsetof(lockstep_parquet_read_options, find_key_user),
    offsetof(lockstep_parquet_read_options, aad_prefix), offsetof(lockstep_parquet_read_options, aad_prefix_len),
    offsetof(lockstep_parquet_read_options, allow_missing_aad),
    offsetof(lockstep_parquet_read_options, allow_unauthenticated_pages),
    offsetof(lockstep_parquet_read_options, allow_unauthenticated_footer),
    offsetof(lockstep_parquet_read_options, reserved),
};
static const size_t parquet_policy_ends[] = {
    offsetof(lockstep_parquet_policy, footer_key), offsetof(lockstep_parquet_policy, footer_key_len),
    offsetof(lockstep_parquet_policy, footer_key_metadata),
    offsetof(lockstep_parquet_policy, footer_key_metadata_len), offsetof(lockstep_parquet_policy, columns),
    offsetof(lockstep_parquet_policy, column_count), offsetof(lockstep_parquet_policy, plain_columns),
    offsetof(lockstep_parquet_policy, plain_column_count), offsetof(lockstep_parquet_policy, aad_prefix),
    offsetof(lockstep_parquet_policy, aad_prefix_len), offsetof(lockstep_parquet_policy, algorithm),
    offsetof(lockstep_parquet_policy, plaintext_footer), offsetof(lockstep_parquet_policy, omit_aad_prefix),
    offsetof(lockstep_parquet_policy, reserved),
};

struct given {
    const lockstep_engine *engine;
    const lockstep_file_key *file_key;
    const char *folder;
};

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

static int use_engine(const struct given *given, const void *options)
{
    lockstep_engine *engine;
    (void)given;
    int code = lockstep_engine_new(options, &engine);
    lockstep_engine_free(engine);
    return code;
}

static int use_file(const struct given *given, const void *options)
{
    return lockstep_encrypt_file(given->engine, given->file_key, NULL, 0, given->folder, given->folder, options, NULL);
}

static int use_stream(const struct given *given, const void *options)
{
    return lockstep_encrypt_stream(given->engine, given->file_key, NULL, 0, no_bytes, NULL, all_bytes, NULL, options, NULL);
}

static int use_table(const struct given *given, const void *table)
{
    return lockstep_device_table_aead(given->engine, LOCKSTEP_AEAD_GCM, LOCKSTEP_ENCRYPT, table, NULL, NULL);
}

static int use_read(const struct given *given, const void *options)
{
    lockstep_parquet_reader *reader;
    int code = lockstep_parquet_open_file(given->engine, options, given->folder, &reader);
    lockstep_parquet_free(reader);
    return code;
}

static int use_policy(const struct given *given, const void *policy)
{
    return lockstep_parquet_encrypt_file(given->engine, policy, given->folder, given->folder, NULL);
}

/* Makes calls with every size up to 8 bytes more than the structure of this library. The allocated memory has exactly this size, so
 * that tools such as valgrind detect reads beyond its end. */
static void every_size(const struct given *given, int (*use)(const struct given *, const void *), const char *name, size_t known,
                       const size_t *ends, size_t count)
{
    char remedy[64];
    snprintf(remedy, sizeof remedy, "set it to sizeof(%s)", name);
    for (size_t size = 0; size <= known + 8; size++) {
        int whole = size == known || size == known + 8;
        for (size_t i = 0; i < count; i++)
            whole |= size == ends[i];
        /* If the size is wrong, all bytes of the members are 0xff. The library would crash if it called a callback of which it read
         * only some bytes. */
        uint8_t *options = malloc(size < sizeof size ? sizeof size : size);
        CHECK(options != NULL);
        memset(options, whole ? 0 : 0xff, size);
        memcpy(options, &size, sizeof size);
        int code = use(given, options);
        int refused = code == LOCKSTEP_ERROR_ARGUMENT && strstr(lockstep_last_error_message(), remedy) != NULL;
        if (refused == whole)
            fprintf(stderr, "%s of %zu bytes: code %d\n", name, size, code);
        CHECK(refused != whole);
        free(options);
    }
}

#define EVERY_SIZE(use, name) \
    every_size(&given, use, "lockstep_" #name, sizeof(lockstep_##name), name##_ends, sizeof name##_ends / sizeof *name##_ends)

void test_options(const lockstep_engine *engine, const char *folder)
{
    lockstep_file_key *file_key;
    OK(lockstep_file_key_generate(256, &file_key));
    struct given given = {engine, file_key, folder};
    EVERY_SIZE(use_engine, engine_options);
    EVERY_SIZE(use_file, file_options);
    EVERY_SIZE(use_stream, stream_options);
    EVERY_SIZE(use_table, device_table);
    EVERY_SIZE(use_read, parquet_read_options);
    EVERY_SIZE(use_policy, parquet_policy);
    lockstep_file_key_free(file_key);
}
