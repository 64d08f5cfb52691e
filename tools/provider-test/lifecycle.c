/* Starts, forks, uses threads and ends in every way that OpenSSL supports. The first argument names the case that
 * is run.
 *
 *   lifecycle CASE EXPECTED_PROVIDER [LOCKSTEP_SO]
 *
 * The configuration comes from OPENSSL_CONF. EXPECTED_PROVIDER must do AES if no provider is named.
 * Every result is compared with the default provider's. Exit code 0, or 1 and a line.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

#define LENGTH (1 << 20)
#define CHILDREN 4
#define THREADS 8

#define DEMAND(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "lifecycle.c:%d: %s\n", __LINE__, #condition); \
            ERR_print_errors_fp(stderr); \
            _exit(1); \
        } \
    } while (0)

static const char *expected;
static const char *module;
static const unsigned char key[32] = "for tests only, not kept secret", iv[16] = "fifteen letters";
static EVP_CIPHER_CTX *kept; /* alive when the process ends */

static EVP_CIPHER_CTX *begin(OSSL_LIB_CTX *library, const char *name, const char *query, const char *provider) {
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(library, name, query);
    DEMAND(cipher != NULL);
    DEMAND(provider == NULL || strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher)), provider) == 0);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    DEMAND(context != NULL && EVP_EncryptInit_ex2(context, cipher, key, iv, NULL) == 1);
    EVP_CIPHER_free(cipher);
    return context;
}

/* Encrypts zeros in pieces of different lengths, and adds up the bytes of the ciphertext. */
static unsigned long work(EVP_CIPHER_CTX *context, int length) {
    static const int pieces[] = {1, 15, 4096, 16384, LENGTH};
    unsigned char *buffer = calloc(1, LENGTH + 16);
    unsigned long sum = 0;
    DEMAND(buffer != NULL);
    for (int piece = 0; length > 0; piece = (piece + 1) % 5) {
        int now = length < pieces[piece] ? length : pieces[piece], out = 0;
        memset(buffer, 0, now);
        DEMAND(EVP_EncryptUpdate(context, buffer, &out, buffer, now) == 1 && out == now);
        for (int i = 0; i < out; i++) sum = sum * 31 + buffer[i];
        length -= now;
    }
    free(buffer);
    return sum;
}

static unsigned long reference(const char *name, int length) {
    EVP_CIPHER_CTX *context = begin(NULL, name, "provider=default", "default");
    unsigned long sum = work(context, length);
    EVP_CIPHER_CTX_free(context);
    return sum;
}

static EVP_CIPHER_CTX *ours(const char *name) {
    return begin(NULL, name, NULL, expected);
}

static void draw(unsigned char *to) {
    DEMAND(RAND_bytes(to, 32) == 1);
}

static void forks(void) {
    unsigned char drawn[CHILDREN + 1][32];
    int ends[CHILDREN][2];
    pid_t children[CHILDREN];
    unsigned long first = reference("AES-256-CTR", LENGTH), both = reference("AES-256-CTR", 2 * LENGTH);
    EVP_CIPHER_CTX *context = ours("AES-256-CTR");
    DEMAND(work(context, LENGTH) == first);
    draw(drawn[0]);
    for (int i = 0; i < CHILDREN; i++) {
        DEMAND(pipe(ends[i]) == 0);
        DEMAND((children[i] = fork()) >= 0);
        if (children[i] == 0) {
            /* Messages that were started before the fork continue in the child, and the child can start messages. */
            EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new(), *fresh = ours("AES-256-CTR");
            DEMAND(copy != NULL && EVP_CIPHER_CTX_copy(copy, context) == 1);
            unsigned long sum = work(context, LENGTH);
            DEMAND(sum == work(copy, LENGTH) && work(fresh, 2 * LENGTH) == both);
            draw(drawn[0]);
            DEMAND(write(ends[i][1], drawn[0], 32) == 32 && write(ends[i][1], &sum, sizeof sum) == sizeof sum);
            EVP_CIPHER_CTX_free(copy);
            /* A process ends in three ways: with exit handlers and live contexts, with exit handlers and no contexts, without exit handlers. */
            if (i % 3 == 0) kept = fresh;
            else EVP_CIPHER_CTX_free(fresh), EVP_CIPHER_CTX_free(context);
            if (i % 3 == 2) _exit(0);
            exit(0);
        }
    }
    unsigned long sum = work(context, LENGTH), theirs;
    draw(drawn[0]);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        DEMAND(read(ends[i][0], drawn[i + 1], 32) == 32 && read(ends[i][0], &theirs, sizeof theirs) == sizeof theirs);
        DEMAND(sum == theirs);
        DEMAND(waitpid(children[i], &status, 0) == children[i]);
        if (status != 0) fprintf(stderr, "a child ended with status %d\n", status);
        DEMAND(status == 0);
        for (int j = 0; j <= i; j++) DEMAND(memcmp(drawn[i + 1], drawn[j], 32) != 0);
    }
    EVP_CIPHER_CTX_free(context);
}

static void at_exit_work(void) {
    work(kept, LENGTH);
    EVP_CIPHER_CTX *context = ours("AES-128-CTR");
    work(context, 1000);
    EVP_CIPHER_CTX_free(context);
}

/* After OPENSSL_cleanup only contexts that still exist may be used. Each of them holds a reference to its provider. */
static void after_cleanup(void) {
    work(kept, LENGTH);
}

static void *threads_work(void *sum) {
    for (int i = 0; i < 4; i++) {
        unsigned char random[32];
        EVP_CIPHER_CTX *context = ours("AES-256-CTR");
        DEMAND(work(context, LENGTH) == *(unsigned long *)sum);
        draw(random);
        EVP_CIPHER_CTX_free(context);
    }
    return NULL;
}

static void threads(void) {
    pthread_t running[THREADS];
    unsigned long sum = reference("AES-256-CTR", LENGTH);
    for (int i = 0; i < THREADS; i++) DEMAND(pthread_create(&running[i], NULL, threads_work, &sum) == 0);
    for (int i = 0; i < THREADS; i++) DEMAND(pthread_join(running[i], NULL) == 0);
}

static atomic_int rounds, cleaned;

static void *outliving_work(void *context) {
    for (int after = 0; after < 20; after += atomic_load(&cleaned)) {
        work(context, LENGTH / 4);
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void outlives(void) {
    pthread_t running;
    EVP_CIPHER_CTX *context = ours("AES-256-CTR");
    DEMAND(pthread_create(&running, NULL, outliving_work, context) == 0);
    while (atomic_load(&rounds) < 3) usleep(1000);
    OPENSSL_cleanup();
    atomic_store(&cleaned, 1);
    DEMAND(pthread_join(running, NULL) == 0);
}

/* Repeatedly creates a library context, and loads, uses and unloads our provider in it. */
static void reloads(int times) {
    unsigned long sum = reference("AES-192-CTR", 100000);
    for (int i = 0; i < times; i++) {
        OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
        OSSL_PROVIDER *both[2] = {OSSL_PROVIDER_load(library, "default"), NULL};
        DEMAND(both[0] != NULL);
        if (module != NULL) {
            DEMAND((both[1] = OSSL_PROVIDER_load(library, module)) != NULL);
        }
        const char *query = module != NULL ? "provider=lockstep" : NULL;
        EVP_CIPHER_CTX *context = begin(library, "AES-192-CTR", query, NULL);
        DEMAND(work(context, 50000) != 0);
        /* The provider is unloaded while it is in use: the context holds a reference to it. */
        if (i % 2 == 1 && both[1] != NULL) DEMAND(OSSL_PROVIDER_unload(both[1]) == 1);
        EVP_CIPHER_CTX *again = EVP_CIPHER_CTX_new();
        DEMAND(EVP_CIPHER_CTX_copy(again, context) == 1);
        DEMAND(EVP_EncryptInit_ex2(again, NULL, NULL, iv, NULL) == 1);
        DEMAND(work(again, 100000) == sum);
        EVP_CIPHER_CTX_free(again);
        EVP_CIPHER_CTX_free(context);
        if (i % 2 == 0 && both[1] != NULL) DEMAND(OSSL_PROVIDER_unload(both[1]) == 1);
        DEMAND(OSSL_PROVIDER_unload(both[0]) == 1);
        OSSL_LIB_CTX_free(library);
    }
}

int main(int count, char **arguments) {
    DEMAND(count >= 3);
    const char *what = arguments[1];
    expected = arguments[2];
    module = count > 3 ? arguments[3] : NULL;
    unsigned char random[32];

    if (strcmp(what, "dlopen") == 0) {
        /* Loads the file of the module directly, without OpenSSL. */
        for (int i = 0; module != NULL && i < 3; i++) {
            void *opened = dlopen(module, RTLD_NOW | RTLD_LOCAL);
            if (opened == NULL) fprintf(stderr, "%s\n", dlerror());
            DEMAND(opened != NULL && dlsym(opened, "OSSL_provider_init") != NULL && dlclose(opened) == 0);
        }
        return 0;
    }
    /* Registered before OpenSSL registers its cleanup, and therefore called after the cleanup. */
    if (strcmp(what, "atexit-after") == 0) DEMAND(atexit(after_cleanup) == 0);
    draw(random);
    if (strcmp(what, "plain") == 0) {
        unsigned long sum = reference("AES-256-CTR", LENGTH);
        EVP_CIPHER_CTX *context = ours("AES-256-CTR");
        DEMAND(work(context, LENGTH) == sum);
        EVP_CIPHER_CTX_free(context);
    } else if (strcmp(what, "kept") == 0 || strcmp(what, "atexit-before") == 0 || strcmp(what, "atexit-after") == 0) {
        kept = ours("AES-256-CTR");
        DEMAND(work(kept, LENGTH) == reference("AES-256-CTR", LENGTH));
        if (strcmp(what, "atexit-before") == 0) DEMAND(atexit(at_exit_work) == 0);
    } else if (strcmp(what, "forks") == 0) forks();
    else if (strcmp(what, "threads") == 0) threads();
    else if (strcmp(what, "outlives") == 0) outlives();
    else if (strcmp(what, "reloads") == 0) reloads(50);
    else if (strcmp(what, "reloads-few") == 0) reloads(4);
    else DEMAND(!"a known case");
    return 0;
}
