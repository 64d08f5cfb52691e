/* Tests that an error message does not contain a key that was given in place of a name or a path. */
#include "check.h"

static const char *const FORMS[] = {
    "8f1b6c2ad94e7053b1e6f8a92c47d30e5a9bc4d1e7f20836419ade5cb70f23d8",
    "jxtsKtlOcFOx5vipLEfTDlqbxNHn8gg2QZreXLcPI9g=",
    "AGE-SECRET-KEY-13UD3C2KEFECJ5V0XLR9FVG76V8T2HXG8E7JPQRX4M5D6W2STFL9S",
    "lockstep-key-256 8f1b6c2ad94e7053b1e6f8a92c47d30e5a9bc4d1e7f20836419ade5cb70f23d8\n",
};

/* True if a text contains 8 consecutive characters of a form. The first 17 characters of a long form do not count, because all keys of
 * this kind begin with them. */
static int shows(const char *text, const char *form)
{
    size_t from = strlen(form) > 64 ? 17 : 0;
    for (; from + 8 <= strlen(form); from++) {
        char part[9] = {0};
        memcpy(part, form + from, 8);
        if (strstr(text, part) != NULL)
            return 1;
    }
    return 0;
}

/* Checks that the call fails, and that its message does not show the form. */
#define HIDES(call) CHECK((call) != LOCKSTEP_OK && lockstep_last_error_message()[0] != '\0' && !shows(lockstep_last_error_message(), form))

static void given(const lockstep_engine *engine, const char *folder, const char *form)
{
    lockstep_engine *none;
    lockstep_engine_options options = {sizeof options, NULL, NULL, 0, 0};
    lockstep_file_key *key, *read;
    lockstep_reader *reader;
    lockstep_parquet_reader *parquet;
    lockstep_device_buffer *buffer;
    lockstep_parquet_column column = {form, (const uint8_t *)form, 16, NULL, 0};
    lockstep_parquet_read_options columns = {
        .size = sizeof columns, .footer_key = (const uint8_t *)form, .footer_key_len = 16, .columns = &column, .column_count = 1};
    char plain[1000];
    snprintf(plain, sizeof plain, "%s/plain.parquet", folder);
    /* The names begin with the name of the CPU's backend. With other names, the library would open the drivers of all devices. */
    char device[200], kernel[200];
    snprintf(device, sizeof device, "cpu:%s", form);
    snprintf(kernel, sizeof kernel, "cpu/%s", form);
    options.device = device;
    HIDES(lockstep_engine_new(&options, &none));
    options.device = "cpu";
    options.kernel = kernel;
    HIDES(lockstep_engine_new(&options, &none));
    OK(lockstep_file_key_generate(256, &key));
    HIDES(lockstep_file_key_read(form, &read));
    HIDES(lockstep_encrypt_file(engine, key, NULL, 0, form, form, NULL, NULL));
    HIDES(lockstep_decrypt_file(engine, key, NULL, 0, form, form, NULL, NULL));
    HIDES(lockstep_reader_open_file(engine, key, NULL, 0, form, &reader));
    HIDES(lockstep_parquet_open_file(engine, &columns, form, &parquet));
    HIDES(lockstep_parquet_decrypt_file(engine, &columns, form, form, NULL));
    lockstep_parquet_policy policy = {
        .size = sizeof policy, .footer_key = (const uint8_t *)form, .footer_key_len = 16, .columns = &column, .column_count = 1};
    HIDES(lockstep_parquet_encrypt_file(engine, &policy, plain, form, NULL));
    HIDES(lockstep_device_allocate(engine, form, 16, &buffer));
    lockstep_file_key_free(key);
}

void test_secrets(const lockstep_engine *engine, const char *folder)
{
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        CHECK(shows(FORMS[i], FORMS[i]) && !shows("cannot open 'a key in place of a path'", FORMS[i]));
        given(engine, folder, FORMS[i]);
    }
}
