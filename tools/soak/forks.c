/* The fork-heavy client of the soak: it begins messages, forks, and continues them in the parent and in the children,
 * again and again. Every result is compared with the default provider's.
 *
 *   forks EXPECTED_PROVIDER PATIENCE FLAW
 *
 * The configuration comes from OPENSSL_CONF. It runs until SIGTERM, and prints its counts each second and at the end:
 *
 *   rounds R forks F bytes B inplace I refused X
 *
 * `inplace` counts rounds whose updates were in place.
 * `refused` counts those of them in which an update returned an error: a device that fails has overwritten its input, so
 * no other processor can do the work again. An update from one buffer to another must succeed whatever the device does.
 *
 * Exit code 0: every result was right. 3: wrong bytes. 4: a child did not end within PATIENCE seconds. 1: anything else.
 * A round that takes longer than twice PATIENCE ends the process by SIGALRM.
 *
 * FLAW is `none`, or a flaw that the soak must find: `wrong`, `hang`, `leak`, `code` (a child ends with an unknown exit
 * code), `early` (the program ends with exit code 0), or `refused` (each update in place).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

enum { HALF = 24576, LENGTH = 2 * HALF, CHILDREN = 3, FLAWED_ROUND = 5, LEAK = 2 << 20 };
enum { RIGHT = 0, FAILED = 1, WRONG = 3, HUNG = 4, REFUSED = 5, UNKNOWN = 42 };

#define DEMAND(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "forks.c:%d: %s\n", __LINE__, #condition); \
            ERR_print_errors_fp(stderr); \
            _exit(FAILED); \
        } \
    } while (0)

/* Name, and whether the message is decrypted. XTS has no state between updates: its halves are two data units. */
static const struct mode {
    const char *name;
    int encrypts;
} modes[] = {
    {"AES-256-CTR", 1}, {"AES-256-CBC", 1}, {"AES-128-CBC", 0}, {"AES-128-GCM", 1}, {"AES-256-XTS", 1},
    {"AES-192-ECB", 1}, {"AES-256-CFB", 0}, {"AES-128-CTR", 1}, {"AES-128-XTS", 0}, {"AES-256-OFB", 1},
};

static volatile sig_atomic_t stopped;
static unsigned long rounds, forked, bytes, inplace, refused;
/* The flaw `refused`. */
static int refuses;
static unsigned char key[64], iv[16], plain[LENGTH], expected[LENGTH];

static void stop(int number) {
    (void)number;
    stopped = 1;
}

/* Generates the data of a round without libcrypto. */
static void fill(unsigned char *to, size_t n) {
    static unsigned long long state = 0x10c57e9;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        to[i] = state >> 56;
    }
}

static EVP_CIPHER_CTX *begin(const struct mode *mode, const char *query, const char *provider) {
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, mode->name, query);
    DEMAND(cipher != NULL);
    DEMAND(strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher)), provider) == 0);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    DEMAND(context != NULL && EVP_CipherInit_ex2(context, cipher, key, iv, mode->encrypts, NULL) == 1);
    DEMAND(EVP_CIPHER_CTX_set_padding(context, 0) == 1);
    EVP_CIPHER_free(cipher);
    return context;
}

/* Continues a message by one half and compares the result. */
static int half(EVP_CIPHER_CTX *context, int which, int in_place) {
    static unsigned char out[HALF];
    const unsigned char *from = plain + which * HALF;
    int n = 0;
    if (in_place) from = memcpy(out, from, HALF);
    if ((in_place && refuses) || EVP_CipherUpdate(context, out, &n, from, HALF) != 1) {
        DEMAND(in_place);
        ERR_clear_error();
        return REFUSED;
    }
    DEMAND(n == HALF);
    bytes += HALF;
    return memcmp(out, expected + which * HALF, HALF) == 0 ? RIGHT : WRONG;
}

/* Processes a complete message of this process. */
static int whole(const struct mode *mode, const char *provider) {
    EVP_CIPHER_CTX *context = begin(mode, NULL, provider);
    int result = half(context, 0, 0);
    if (result == RIGHT) result = half(context, 1, 0);
    EVP_CIPHER_CTX_free(context);
    return result;
}

static int child(int number, const struct mode *mode, EVP_CIPHER_CTX *context, const char *provider, int in_place) {
    EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
    DEMAND(copy != NULL && EVP_CIPHER_CTX_copy(copy, context) == 1);
    int result = half(copy, 1, in_place);
    if (result == RIGHT && number == 0) result = half(context, 1, 0);
    if (result == RIGHT && number == 1) result = whole(mode, provider);
    EVP_CIPHER_CTX_free(copy);
    return result;
}

/* The position of a result, from good to bad. An unknown exit code of a child is a failure. */
static int rank(int result) {
    static const int order[] = {RIGHT, REFUSED, HUNG, WRONG};
    int i = 0;
    while (i < 4 && result != order[i]) i++;
    return i;
}

/* The worse of two results. */
static int worse(int one, int other) {
    int result = rank(one) > rank(other) ? one : other;
    return rank(result) == 4 ? FAILED : result;
}

/* Whether the updates of this round are in place. */
static int is_in_place(void) {
    return rounds % 3 == 0;
}

static int round_of(const char *provider, unsigned patience, const char *flaw) {
    const struct mode *mode = &modes[rounds % (sizeof modes / sizeof *modes)];
    int in_place = is_in_place(), flawed = rounds == FLAWED_ROUND, n = 0, result;
    fill(key, sizeof key);
    fill(iv, sizeof iv);
    fill(plain, sizeof plain);
    EVP_CIPHER_CTX *reference = begin(mode, "provider=default", "default");
    for (int which = 0; which < 2; which++) {
        DEMAND(EVP_CipherUpdate(reference, expected + which * HALF, &n, plain + which * HALF, HALF) == 1 && n == HALF);
    }
    EVP_CIPHER_CTX_free(reference);
    if (flawed && strcmp(flaw, "wrong") == 0) expected[HALF + 77] ^= 1;
    if (strcmp(flaw, "leak") == 0) memset(malloc(LEAK), 1, LEAK);

    EVP_CIPHER_CTX *context = begin(mode, NULL, provider);
    if ((result = half(context, 0, in_place)) != RIGHT) {
        EVP_CIPHER_CTX_free(context);
        return result;
    }
    pid_t children[CHILDREN];
    fflush(stdout);
    for (int i = 0; i < CHILDREN; i++) {
        DEMAND((children[i] = fork()) >= 0);
        if (children[i] == 0) {
            signal(SIGTERM, SIG_IGN);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(patience);
            if (flawed && i == 1 && strcmp(flaw, "hang") == 0) pause();
            if (flawed && i == 1 && strcmp(flaw, "code") == 0) _exit(UNKNOWN);
            int code = child(i, mode, context, provider, in_place);
            /* Ends the child with exit handlers, or without them. */
            if (i % 2 == 0) exit(code);
            _exit(code);
        }
    }
    forked += CHILDREN;
    result = half(context, 1, in_place);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        DEMAND(waitpid(children[i], &status, 0) == children[i]);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) result = worse(result, HUNG);
        else if (WIFSIGNALED(status)) {
            fprintf(stderr, "%s: a child ended by signal %d\n", mode->name, WTERMSIG(status));
            result = worse(result, FAILED);
        } else {
            result = worse(result, WEXITSTATUS(status));
            bytes += WEXITSTATUS(status) == RIGHT ? HALF * (i == 0 ? 2 : i == 1 ? 3 : 1) : 0;
        }
    }
    EVP_CIPHER_CTX_free(context);
    if (result != RIGHT && result != REFUSED) {
        fprintf(stderr, "%s, round %lu, %s: %s\n", mode->name, rounds, in_place ? "in place" : "from buffer to buffer",
            result == WRONG ? "wrong bytes" : result == HUNG ? "a child hung" : "failed");
    }
    return result;
}

static void report(void) {
    printf("rounds %lu forks %lu bytes %lu inplace %lu refused %lu\n", rounds, forked, bytes, inplace, refused);
    fflush(stdout);
}

int main(int count, char **arguments) {
    DEMAND(count == 4);
    unsigned patience = (unsigned)atoi(arguments[2]);
    time_t told = time(NULL);
    /* This program ends if the soak is killed. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGTERM, stop);
    refuses = strcmp(arguments[3], "refused") == 0;
    while (!stopped && !(rounds == FLAWED_ROUND && strcmp(arguments[3], "early") == 0)) {
        alarm(2 * patience);
        inplace += is_in_place();
        int result = round_of(arguments[1], patience, arguments[3]);
        rounds++;
        refused += result == REFUSED;
        if (result != RIGHT && result != REFUSED) {
            report();
            return result;
        }
        if (time(NULL) != told) {
            told = time(NULL);
            report();
        }
    }
    report();
    return 0;
}
