/* Encrypts a file, and waits forever after a part of the output was written. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <unistd.h>

#include <lockstep.h>

static int stop(void *user, uint64_t bytes)
{
    (void)user;
    if (bytes == 0)
        return 0;
    printf("written\n");
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    lockstep_engine *engine;
    lockstep_file_key *key;
    lockstep_file_options options = {sizeof options, stop, NULL, 1, 0, 0, 0, 0, 0};
    if (argc != 3 || lockstep_engine_new(NULL, &engine) != LOCKSTEP_OK || lockstep_file_key_generate(256, &key) != LOCKSTEP_OK)
        return 1;
    return lockstep_encrypt_file(engine, key, NULL, 0, argv[1], argv[2], &options, NULL);
}
