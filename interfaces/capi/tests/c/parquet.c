/* Tests with encrypted Parquet files, and with their modules in host memory and device memory. FOLDER/plain.parquet is a plain file with
 * one row group and the columns a, b and c. Each column has a dictionary page and a data page, and b has the values v0, v1 and v2. */
#include "check.h"

/* A plain view of a file exceeds the length of the file by at least 128 KiB if the key of a column is missing. ROOM is enough for it. */
enum { MODULES = 12, ROOM = 1 << 18 };

static const uint8_t FOOTER_KEY[32] = {1, 2, 3}, COLUMN_KEY[16] = {4, 5, 6};

static const char *path_in(const char *folder, const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static size_t read_file(const char *path, uint8_t *bytes)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t len = fread(bytes, 1, ROOM, file);
    CHECK(len < ROOM && fclose(file) == 0);
    return len;
}

/* True if the bytes contain the dictionary of column b, which consists of each value and its length. Random bytes contain it only with a
 * negligible probability. */
static int has_values(const uint8_t *bytes, size_t len)
{
    static const uint8_t values[18] = {2, 0, 0, 0, 'v', '0', 2, 0, 0, 0, 'v', '1', 2, 0, 0, 0, 'v', '2'};
    for (size_t i = 0; i + sizeof values <= len; i++)
        if (memcmp(bytes + i, values, sizeof values) == 0)
            return 1;
    return 0;
}

static int exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

struct source {
    const uint8_t *bytes;
    size_t len;
};

static int read_source(void *user, uint64_t offset, uint8_t *buffer, size_t len)
{
    const struct source *source = user;
    if (offset + len > source->len)
        return 1;
    memcpy(buffer, source->bytes + offset, len);
    return 0;
}

/* Finds keys like a key service. The key metadata are the name of the key, which is "f" for the footer. */
static int find_key(void *user, const char *column, const uint8_t *metadata, size_t len, uint8_t *key, size_t *key_len)
{
    ++*(int *)user;
    if (len != 1)
        return 7;
    if (*metadata == 'f') {
        CHECK(column == NULL);
        memcpy(key, FOOTER_KEY, *key_len = 32);
    } else if (*metadata == 'b') {
        CHECK(strcmp(column, "b") == 0);
        memcpy(key, COLUMN_KEY, *key_len = 16);
    } else {
        *key_len = 0;
    }
    return 0;
}

static lockstep_parquet_policy policy_of(const lockstep_parquet_column *column)
{
    return (lockstep_parquet_policy){
        .size = sizeof(lockstep_parquet_policy), .footer_key = FOOTER_KEY, .footer_key_len = 32,
        .footer_key_metadata = (const uint8_t *)"f", .footer_key_metadata_len = 1, .columns = column, .column_count = 1,
    };
}

static lockstep_parquet_read_options keys_of(const lockstep_parquet_column *columns, size_t count)
{
    return (lockstep_parquet_read_options){
        .size = sizeof(lockstep_parquet_read_options), .footer_key = FOOTER_KEY, .footer_key_len = 32,
        .columns = columns, .column_count = count,
    };
}

/* Opens an encrypted file that is in memory, and reads the whole plain view. */
static int read_all(const lockstep_engine *engine, const lockstep_parquet_read_options *options, struct source file, uint8_t *plain,
                    size_t *len)
{
    lockstep_parquet_reader *reader;
    int code = lockstep_parquet_open(engine, options, read_source, &file, file.len, &reader);
    if (code == LOCKSTEP_OK) {
        CHECK(lockstep_parquet_len(reader) < ROOM);
        code = lockstep_parquet_read(reader, 0, plain, ROOM, len);
        CHECK(code != LOCKSTEP_OK || *len == lockstep_parquet_len(reader));
    }
    lockstep_parquet_free(reader);
    return code;
}

static void keys(const lockstep_engine *engine, const char *encrypted)
{
    static uint8_t bytes[ROOM], plain[ROOM], other[ROOM];
    const lockstep_parquet_column column = {"b", COLUMN_KEY, 16, NULL, 0};
    lockstep_parquet_read_options options = keys_of(&column, 1), by_callback = {.size = sizeof by_callback};
    size_t len, got;
    int calls = 0;
    struct source file = {bytes, read_file(encrypted, bytes)};
    CHECK(!has_values(bytes, file.len) && memcmp(bytes, "PARE", 4) == 0);
    OK(read_all(engine, &options, file, plain, &len));
    CHECK(has_values(plain, len) && memcmp(plain, "PAR1", 4) == 0 && memcmp(plain + len - 4, "PAR1", 4) == 0);
    by_callback.find_key = find_key;
    by_callback.find_key_user = &calls;
    OK(read_all(engine, &by_callback, file, other, &got));
    CHECK(got == len && memcmp(other, plain, len) == 0 && calls == 2);
    /* Options with both keys and `find_key` are refused, and so are options with neither. */
    by_callback.footer_key = FOOTER_KEY;
    by_callback.footer_key_len = 32;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &by_callback, file, other, &got));
    options.footer_key_len = options.column_count = 0;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, other, &got));
    FAILS(LOCKSTEP_ERROR_NULL, read_all(engine, NULL, file, other, &got));
    /* If the key of a column is missing, the column cannot be read, but the other columns can. */
    options = keys_of(NULL, 0);
    OK(read_all(engine, &options, file, other, &got));
    CHECK(!has_values(other, got));
    options.footer_key = COLUMN_KEY;
    options.footer_key_len = 16;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, read_all(engine, &options, file, other, &got));
    options.footer_key_len = 15;
    FAILS(LOCKSTEP_ERROR_KEY, read_all(engine, &options, file, other, &got));
    const lockstep_parquet_column two[] = {{"b", COLUMN_KEY, 16, NULL, 0}, {"a", COLUMN_KEY, 16, NULL, 0}};
    options = keys_of(two, 2);
    CHECK(read_all(engine, &options, file, other, &got) != LOCKSTEP_OK);
    options = keys_of(&column, 1);
    options.aad_prefix = (const uint8_t *)"x";
    options.aad_prefix_len = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, other, &got));
    options.reserved = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, other, &got));
    /* One byte of a page is changed. */
    bytes[60] ^= 1;
    options = keys_of(&column, 1);
    memset(other, 9, sizeof other);
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, read_all(engine, &options, file, other, &got));
    CHECK(is_all(other, 100, 0));
}

static void files(const lockstep_engine *engine, const char *folder)
{
    static uint8_t plain[ROOM], encrypted[ROOM], decrypted[ROOM];
    const lockstep_parquet_column column = {"b", COLUMN_KEY, 16, (const uint8_t *)"b", 1}, wrong = {"none", COLUMN_KEY, 16, NULL, 0};
    const char *from = path_in(folder, "plain.parquet"), *to = path_in(folder, "encrypted.parquet");
    lockstep_parquet_policy policy = policy_of(&wrong);
    lockstep_parquet_read_options options = keys_of(&column, 1);
    lockstep_file_options force = {.size = sizeof force, .force = 1};
    lockstep_parquet_reader *reader;
    size_t len = read_file(from, plain), got;
    CHECK(has_values(plain, len));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_encrypt_file(engine, &policy, from, to, NULL));
    CHECK(strstr(lockstep_last_error_message(), "none") != NULL && !exists(to));
    policy = policy_of(&column);
    const char *b = "b";
    policy.plain_columns = &b;
    policy.plain_column_count = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_encrypt_file(engine, &policy, from, to, NULL));
    policy = policy_of(&column);
    policy.algorithm = 2;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_encrypt_file(engine, &policy, from, to, NULL));
    policy.algorithm = LOCKSTEP_PARQUET_AES_GCM_V1;
    force.threads = 3;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_encrypt_file(engine, &policy, from, to, &force));
    force.threads = 0;
    FAILS(LOCKSTEP_ERROR_SAME_FILE, lockstep_parquet_encrypt_file(engine, &policy, from, from, &force));
    CHECK(!exists(to));
    OK(lockstep_parquet_encrypt_file(engine, &policy, from, to, NULL));
    FAILS(LOCKSTEP_ERROR_EXISTS, lockstep_parquet_encrypt_file(engine, &policy, from, to, NULL));
    FAILS(LOCKSTEP_ERROR_PROTECTION, lockstep_parquet_encrypt_file(engine, &policy, to, from, &force));
    FAILS(LOCKSTEP_ERROR_PROTECTION, lockstep_parquet_open_file(engine, &options, from, &reader));
    CHECK(reader == NULL);
    FAILS(LOCKSTEP_ERROR_FILE, lockstep_parquet_open_file(engine, &options, path_in(folder, "missing"), &reader));
    keys(engine, to);
    OK(lockstep_parquet_open_file(engine, &options, to, &reader));
    OK(lockstep_parquet_read(reader, 0, encrypted, ROOM, &got));
    const char *out = path_in(folder, "decrypted.parquet");
    OK(lockstep_parquet_decrypt_file(engine, &options, to, out, NULL));
    CHECK(read_file(out, decrypted) == got && memcmp(encrypted, decrypted, got) == 0 && has_values(decrypted, got));
    OK(lockstep_parquet_read(reader, lockstep_parquet_len(reader) - 2, decrypted, 10, &got));
    CHECK(got == 2 && memcmp(decrypted, "R1", 2) == 0);
    lockstep_parquet_free(reader);
    /* The decrypted file is a plain Parquet file, so it can be encrypted again. */
    policy.algorithm = LOCKSTEP_PARQUET_AES_GCM_CTR_V1;
    policy.plaintext_footer = 1;
    OK(lockstep_parquet_encrypt_file(engine, &policy, out, to, &force));
    len = read_file(to, encrypted);
    CHECK(!has_values(encrypted, len) && memcmp(encrypted, "PAR1", 4) == 0);
    struct source file = {encrypted, len};
    FAILS(LOCKSTEP_ERROR_PROTECTION, read_all(engine, &options, file, decrypted, &got));
    options.allow_unauthenticated_pages = 1;
    OK(read_all(engine, &options, file, decrypted, &got));
    CHECK(has_values(decrypted, got));
    FAILS(LOCKSTEP_ERROR_PARQUET, read_all(engine, &options, (struct source){encrypted, len - 1}, decrypted, &got));
}

/* If a file stores its AAD prefix, the stored prefix is not used: the caller must give it. */
static void prefixes(const lockstep_engine *engine, const char *folder)
{
    static uint8_t encrypted[ROOM], decrypted[ROOM];
    const char *to = path_in(folder, "prefix.parquet");
    lockstep_file_options force = {.size = sizeof force, .force = 1};
    lockstep_parquet_policy policy = policy_of(NULL);
    lockstep_parquet_read_options options = keys_of(NULL, 0);
    size_t got;
    policy.column_count = 0;
    policy.aad_prefix = (const uint8_t *)"part \"1";
    policy.aad_prefix_len = 7;
    OK(lockstep_parquet_encrypt_file(engine, &policy, path_in(folder, "plain.parquet"), to, &force));
    struct source file = {encrypted, read_file(to, encrypted)};
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, decrypted, &got));
    CHECK(strstr(lockstep_last_error_message(), "\"part \\\"1\"") && strstr(lockstep_last_error_message(), "aad_prefix"));
    options.aad_prefix = (const uint8_t *)"part \"2";
    options.aad_prefix_len = 7;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, decrypted, &got));
    options.aad_prefix = policy.aad_prefix;
    OK(read_all(engine, &options, file, decrypted, &got));
    CHECK(has_values(decrypted, got));
}

/* The name of a group applies to all columns in the group. A file with a plaintext footer can be read without a footer key. */
static void partial_keys(const lockstep_engine *engine, const char *folder)
{
    static uint8_t encrypted[ROOM], decrypted[ROOM];
    const char *to = path_in(folder, "partial.parquet"), *b = "b";
    const lockstep_parquet_column group = {"c", COLUMN_KEY, 16, NULL, 0};
    lockstep_file_options force = {.size = sizeof force, .force = 1};
    lockstep_parquet_policy policy = policy_of(&group);
    size_t got;
    policy.plain_columns = &b;
    policy.plain_column_count = 1;
    policy.plaintext_footer = 1;
    OK(lockstep_parquet_encrypt_file(engine, &policy, path_in(folder, "plain.parquet"), to, &force));
    struct source file = {encrypted, read_file(to, encrypted)};
    lockstep_parquet_read_options options = keys_of(&group, 1);
    OK(read_all(engine, &options, file, decrypted, &got));
    CHECK(has_values(decrypted, got));
    options.footer_key_len = 0;
    FAILS(LOCKSTEP_ERROR_PROTECTION, read_all(engine, &options, file, decrypted, &got));
    options.allow_unauthenticated_footer = 1;
    OK(read_all(engine, &options, file, decrypted, &got));
    CHECK(has_values(decrypted, got));
    options.column_count = 0;
    OK(read_all(engine, &options, file, decrypted, &got));
    CHECK(has_values(decrypted, got));
    options.allow_unauthenticated_footer = 0;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, read_all(engine, &options, file, decrypted, &got));
}

/* The page headers and pages of a file that is encrypted with one key, in the order of the file. */
struct pages {
    uint8_t bytes[ROOM];
    size_t starts[MODULES + 1];
    lockstep_parquet_protection protections[MODULES];
};

static void find_pages(const char *path, lockstep_key *key, int algorithm, struct pages *pages)
{
    static const int types[] = {
        LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE_HEADER, LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE,
        LOCKSTEP_PARQUET_MODULE_DATA_PAGE_HEADER, LOCKSTEP_PARQUET_MODULE_DATA_PAGE,
    };
    size_t len = read_file(path, pages->bytes), at = 4;
    const uint8_t *end = pages->bytes + len - 8;
    uint32_t footer_len = end[0] | end[1] << 8;
    for (int i = 0; i < MODULES; i++) {
        pages->protections[i] = (lockstep_parquet_protection){
            .key = key, .algorithm = algorithm, .module = types[i % 4], .column = (int16_t)(i / 4),
        };
        /* The identifier of the file follows the first 4 bytes of the crypto metadata. */
        memcpy(pages->protections[i].aad_file_unique, end - footer_len + 4, 8);
        pages->starts[i] = at;
        at += 4 + (pages->bytes[at] | (size_t)pages->bytes[at + 1] << 8);
    }
    pages->starts[MODULES] = at;
}

static size_t overhead(const lockstep_parquet_protection *protection)
{
    int is_page = protection->module == LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE || protection->module == LOCKSTEP_PARQUET_MODULE_DATA_PAGE;
    return protection->algorithm == LOCKSTEP_PARQUET_AES_GCM_CTR_V1 && is_page ? 16 : 32;
}

static void modules_on_host(const lockstep_engine *engine, const struct pages *pages)
{
    static uint8_t bytes[ROOM], separate[ROOM];
    lockstep_parquet_module modules[MODULES];
    memcpy(bytes, pages->bytes, ROOM);
    for (int in_place = 0; in_place < 2; in_place++) {
        memset(separate, 9, ROOM);
        for (int i = 0; i < MODULES; i++) {
            size_t start = pages->starts[i], len = pages->starts[i + 1] - start, plain = len - overhead(&pages->protections[i]);
            uint8_t *output = in_place ? bytes + start + 16 : separate + start;
            modules[i] = (lockstep_parquet_module){pages->protections[i], bytes + start, len, output, plain, 77};
        }
        OK(lockstep_parquet_decrypt_modules(engine, modules, MODULES));
        for (int i = 0; i < MODULES; i++)
            CHECK(modules[i].status == LOCKSTEP_STATUS_DONE);
        /* Module 5 is the dictionary page of column b. */
        CHECK(has_values(modules[5].output, modules[5].output_len) && modules[5].output_len == 18);
    }
    memcpy(bytes, pages->bytes, ROOM);
    for (int i = 0; i < MODULES; i++)
        modules[i].output = separate + pages->starts[i];
    /* Module 4 gets a wrong ordinal of its column, and module 7 gets a wrong length field. */
    memset(separate, 9, ROOM);
    modules[4].protection.column = 2;
    bytes[pages->starts[7]] ^= 1;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_parquet_decrypt_modules(engine, modules, MODULES));
    for (int i = 0; i < MODULES; i++) {
        int is_bad = i == 4 || i == 7;
        CHECK(modules[i].status == (is_bad ? LOCKSTEP_STATUS_AUTHENTICATION_FAILED : LOCKSTEP_STATUS_DONE));
        CHECK(is_all(modules[i].output, modules[i].output_len, 0) == is_bad);
    }
    CHECK(has_values(modules[5].output, modules[5].output_len));
    /* Calls with wrong arguments are refused and do not change the output. */
    memset(separate, 9, ROOM);
    lockstep_parquet_module one = modules[0];
    one.output_len -= 1;
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_parquet_decrypt_modules(engine, &one, 1));
    one = modules[0];
    one.len = 31;
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_parquet_decrypt_modules(engine, &one, 1));
    one = modules[0];
    one.output = bytes + pages->starts[0] + 15;
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_parquet_decrypt_modules(engine, &one, 1));
    one = modules[0];
    one.protection.module = 10;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_decrypt_modules(engine, &one, 1));
    /* The header of a dictionary page has no ordinal of a page, so a call that gives one is refused. */
    one = modules[0];
    one.protection.page = 1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_decrypt_modules(engine, &one, 1));
    one = modules[0];
    one.protection.column = -1;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_parquet_decrypt_modules(engine, &one, 1));
    one = modules[0];
    one.protection.key = NULL;
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_parquet_decrypt_modules(engine, &one, 1));
    lockstep_key *ccm = new_key(LOCKSTEP_AEAD_CCM, 32);
    one.protection.key = ccm;
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_parquet_decrypt_modules(engine, &one, 1));
    lockstep_key_free(ccm);
    CHECK(is_all(separate, ROOM, 9) && one.status == LOCKSTEP_STATUS_PENDING);
    OK(lockstep_parquet_decrypt_modules(engine, NULL, 0));
}

/* The modules are decrypted in device memory. The output replaces the ciphertext or is in separate memory. */
static void modules_on_device(const lockstep_engine *engine, const struct pages *pages)
{
    static uint8_t got[ROOM];
    lockstep_parquet_device_module modules[MODULES];
    lockstep_device_buffer *from, *to;
    OK(lockstep_device_allocate(engine, NULL, ROOM, &from));
    OK(lockstep_device_allocate(engine, NULL, ROOM, &to));
    for (int in_place = 0; in_place < 2; in_place++) {
        OK(lockstep_device_upload(from, 0, pages->bytes, ROOM, NULL));
        for (int i = 0; i < MODULES; i++) {
            size_t start = pages->starts[i], len = pages->starts[i + 1] - start, plain = len - overhead(&pages->protections[i]);
            lockstep_device_range input = {from, start, len}, output = {in_place ? from : to, start + 16, plain};
            modules[i] = (lockstep_parquet_device_module){pages->protections[i], input, output, 77};
        }
        OK(lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
        OK(lockstep_device_download(in_place ? from : to, 0, got, ROOM, NULL));
        for (int i = 0; i < MODULES; i++)
            CHECK(modules[i].status == LOCKSTEP_STATUS_DONE);
        CHECK(has_values(got + pages->starts[5] + 16, 18) && !has_values(pages->bytes, pages->starts[MODULES]));
    }
    OK(lockstep_device_upload(from, 0, pages->bytes, ROOM, NULL));
    for (int i = 0; i < MODULES; i++)
        modules[i].output.buffer = to;
    modules[4].protection.row_group = 1;
    uint8_t wrong = pages->bytes[pages->starts[7]] ^ 1;
    OK(lockstep_device_upload(from, pages->starts[7], &wrong, 1, NULL));
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
    OK(lockstep_device_download(to, 0, got, ROOM, NULL));
    for (int i = 0; i < MODULES; i++) {
        int is_bad = i == 4 || i == 7;
        CHECK(modules[i].status == (is_bad ? LOCKSTEP_STATUS_AUTHENTICATION_FAILED : LOCKSTEP_STATUS_DONE));
        CHECK(is_all(got + modules[i].output.offset, modules[i].output.len, 0) == is_bad);
    }
    modules[0].output = modules[1].output;
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
    modules[0].output = modules[2].output;
    modules[0].input.len = modules[2].input.len;
    FAILS(LOCKSTEP_ERROR_OVERLAP, lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
    modules[0].input.len = 31;
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
    modules[0].input = modules[2].input;
    modules[0].input.buffer = NULL;
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_parquet_device_decrypt_modules(engine, modules, MODULES, NULL));
    lockstep_device_buffer_free(from);
    lockstep_device_buffer_free(to);
}

static void modules(const lockstep_engine *engine, const char *folder, void (*test)(const lockstep_engine *, const struct pages *))
{
    static const int algorithms[] = {LOCKSTEP_PARQUET_AES_GCM_V1, LOCKSTEP_PARQUET_AES_GCM_CTR_V1};
    lockstep_file_options force = {.size = sizeof force, .force = 1};
    lockstep_parquet_policy policy = policy_of(NULL);
    lockstep_key *key;
    static struct pages pages;
    const char *to = path_in(folder, "uniform.parquet");
    policy.column_count = policy.footer_key_metadata_len = 0;
    OK(lockstep_key_new(LOCKSTEP_AEAD_GCM, FOOTER_KEY, 32, &key));
    for (int i = 0; i < 2; i++) {
        policy.algorithm = algorithms[i];
        OK(lockstep_parquet_encrypt_file(engine, &policy, path_in(folder, "plain.parquet"), to, &force));
        find_pages(to, key, algorithms[i], &pages);
        test(engine, &pages);
    }
    lockstep_key_free(key);
}

void test_parquet(const lockstep_engine *engine, const char *folder)
{
    files(engine, folder);
    prefixes(engine, folder);
    partial_keys(engine, folder);
    modules(engine, folder, modules_on_host);
}

void test_parquet_device(const lockstep_engine *engine, const char *folder)
{
    modules(engine, folder, modules_on_device);
}
