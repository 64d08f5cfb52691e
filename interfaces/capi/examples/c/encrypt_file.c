/* Encrypts a file with a key file of `lockstep keygen`, and reads a part of the encrypted file. */
#include <stdio.h>
#include <lockstep.h>

int main(int argc, char **argv)
{
    lockstep_engine *engine = NULL;
    lockstep_file_key *key = NULL;
    lockstep_reader *reader = NULL;
    unsigned char start[16];
    size_t got = 0;
    int code = LOCKSTEP_ERROR_ARGUMENT;

    if (argc == 4) {
        code = lockstep_engine_new(NULL, &engine);
        if (code == LOCKSTEP_OK)
            code = lockstep_file_key_read(argv[1], &key);
        if (code == LOCKSTEP_OK)
            code = lockstep_encrypt_file(engine, key, NULL, 0, argv[2], argv[3], NULL, NULL);
        if (code == LOCKSTEP_OK)
            code = lockstep_reader_open_file(engine, key, NULL, 0, argv[3], &reader);
        if (code == LOCKSTEP_OK)
            code = lockstep_reader_read(reader, 0, start, sizeof start, &got);
        if (code == LOCKSTEP_OK)
            printf("encrypted; it starts with: %.*s\n", (int)got, (const char *)start);
        else
            fprintf(stderr, "%s\n", lockstep_last_error_message());
    } else {
        fprintf(stderr, "usage: encrypt_file KEY-FILE INPUT OUTPUT\n");
    }
    lockstep_reader_free(reader);
    lockstep_file_key_free(key);
    lockstep_engine_free(engine);
    return code == LOCKSTEP_OK ? 0 : 1;
}
