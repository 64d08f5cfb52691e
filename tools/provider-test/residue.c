/* Tests whether keys remain in memory: on the stack after a call, or in blocks that are freed.
 *
 *     residue PROVIDER [FOLDER]
 *
 * The AES-128 key of FIPS 197, appendix A.1, is set, used, copied and freed in every mode; then all of the stack below, and
 * every block at the moment of its free(), are searched for the key, its first and last round keys, and the secrets of GCM: the
 * hash key H (SP 800-38D, 6.4: the encrypted zero block) and its powers in the forms in which kernels store them, the counter
 * of an IV of 16 bytes, which reveals H, and the right tag of a forged message. After that, all memory of the process is
 * searched, with the stacks of the provider's threads. As a control, the program itself puts a round key in both places and must find it.
 * Prints a line for each secret that is found; the exit code is 1 if there is one.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH (128 << 10)
/* The first FIXED are constants; find_secrets() computes the others. */
#define FIXED 6
#define SECRETS 11

static unsigned char secrets[SECRETS][16] = {
    { 0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c },
    { 0xa0, 0xfa, 0xfe, 0x17, 0x88, 0x54, 0x2c, 0xb1, 0x23, 0xa3, 0x39, 0x39, 0x2a, 0x6c, 0x76, 0x05 },
    { 0xd0, 0x14, 0xf9, 0xa8, 0xc9, 0xee, 0x25, 0x89, 0xe1, 0x3f, 0x0c, 0xc8, 0xb6, 0x63, 0x0c, 0xa6 },
    { 0x7d, 0xf7, 0x6b, 0x0c, 0x1a, 0xb8, 0x99, 0xb3, 0x3e, 0x42, 0xf0, 0x47, 0xb9, 0x1b, 0x54, 0x6f },
    { 0x6f, 0x54, 0x1b, 0xb9, 0x47, 0xf0, 0x42, 0x3e, 0xb3, 0x99, 0xb8, 0x1a, 0x0c, 0x6b, 0xf7, 0x7d },
    { 0xde, 0xa8, 0x36, 0x72, 0x8f, 0xe0, 0x85, 0x7c, 0x66, 0x33, 0x71, 0x35, 0x18, 0xd6, 0xee, 0xfb },
};
static const char *secret_names[SECRETS] = { "the key", "the first round key", "the last round key", "H of GCM",
    "H with its bytes reversed", "H as multiplied by (x86)", "H^2 as multiplied by (x86)", "H^4 as multiplied by (x86)",
    "the counter", "the counter with its bytes reversed", "the right tag of a forged message" };
/* The last 32 bits of a counter change, so they are not compared. */
static const int starts[SECRETS] = { [9] = 4 }, ends[SECRETS] = { 16, 16, 16, 16, 16, 16, 16, 16, 12, 16, 16 };

static const unsigned char iv[16] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 121, 98, 219, 61 };
/* Long enough for the fused loops of every kernel. Not zero: an encrypted zero block is H. */
#define LONG 4096
static unsigned char text[LONG + 37], ciphertext[sizeof(text)];

/* Number of secrets that are searched for. */
static int known = FIXED;

/* volatile, because the compiler assumes that free() reads neither of them. */
static volatile int watching, finds;
static const char *doing = "";

static int holds(const unsigned char *from, const unsigned char *to, int which)
{
    int at = starts[which], len = ends[which] - at;
    for (; to - from >= len; from++)
        if (memcmp(from, secrets[which] + at, len) == 0)
            return 1;
    return 0;
}

/* Replaces free() of the C library. Rust and AWS-LC call this function too. */
void free(void *block)
{
    static void (*next)(void *);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "free");
    if (watching && block != NULL) {
        unsigned char *bytes = block;
        for (int i = 0; i < known; i++)
            if (holds(bytes, bytes + malloc_usable_size(block), i)) {
                watching = 0;
                printf("%s: %s in freed memory\n", doing, secret_names[i]);
                watching = 1;
                finds++;
                /* Otherwise the secret would be found again. */
                memset(bytes, 0, malloc_usable_size(block));
            }
    }
    next(block);
}

__attribute__((noinline)) static void clear_stack(void)
{
    volatile unsigned char *below = alloca(DEPTH);
    for (int i = 0; i < DEPTH; i++)
        below[i] = 0;
}

/* Searches the stack below this frame for secrets that other calls have left there. */
__attribute__((noinline)) static void search_stack(void)
{
    volatile unsigned char here = 0;
    const unsigned char *top = (const unsigned char *)&here;
    for (int i = 0; i < known; i++)
        if (holds(top - DEPTH + 4096, top - 512, i)) {
            printf("%s: %s on the stack\n", doing, secret_names[i]);
            finds++;
        }
}

__attribute__((noinline)) static void leave_on_stack(void)
{
    volatile unsigned char *below = alloca(8192);
    for (int i = 0; i < 16; i++)
        below[i] = secrets[2][i];
}

static void must(int ok, const char *what)
{
    if (!ok) {
        printf("%s: %s failed\n", doing, what);
        exit(2);
    }
}

/* The product of POLYVAL (RFC 8452, section 3): a * b * x^-128. */
static unsigned __int128 dot(unsigned __int128 a, unsigned __int128 b)
{
    const unsigned __int128 divided = (unsigned __int128)0xe1 << 120;
    unsigned __int128 sum = 0;
    for (int i = 0; i < 128; i++) {
        if (b >> i & 1)
            sum ^= a;
        sum = sum >> 1 ^ (sum & 1 ? divided : 0);
    }
    return sum;
}

static unsigned __int128 reversed(const unsigned char *block)
{
    unsigned __int128 number = 0;
    for (int i = 0; i < 16; i++)
        number = number << 8 | block[i];
    return number;
}

static void store(int which, unsigned __int128 number, int reverse)
{
    for (int i = 0; i < 16; i++)
        secrets[which][reverse ? 15 - i : i] = (unsigned char)(number >> 8 * i);
}

/* Encrypts `text` with the default provider. */
static void seal(int iv_len, unsigned char *tag)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", "provider=default");
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int len;
    must(EVP_EncryptInit_ex(context, cipher, NULL, NULL, NULL)
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, iv_len, NULL)
            && EVP_EncryptInit_ex(context, NULL, NULL, secrets[0], iv)
            && EVP_EncryptUpdate(context, ciphertext, &len, text, sizeof(text))
            && EVP_EncryptFinal_ex(context, ciphertext, &len)
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag),
        "the default provider");
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
}

/* The control of the counter: the first block of the default provider's ciphertext is the encrypted next counter, XORed. */
static void check_counter(void)
{
    unsigned char block[16];
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-ECB", "provider=default");
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int len;
    memcpy(block, secrets[8], 16);
    block[15]++;
    must(block[15] != 0 && EVP_EncryptInit_ex(context, cipher, NULL, secrets[0], NULL)
            && EVP_EncryptUpdate(context, block, &len, block, 16),
        "the default provider");
    for (int i = 0; i < 16; i++)
        must((block[i] ^ text[i]) == ciphertext[i], "the counter");
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
}

/* Computes the secrets that are not constants, for an IV of a length. */
static void find_secrets(int iv_len)
{
    unsigned __int128 h = 0, counter;
    for (int i = 15; i >= 0; i--)
        h = h << 8 | secrets[5][i];
    store(6, dot(h, h), 0);
    store(7, dot(dot(h, h), dot(h, h)), 0);
    /* SP 800-38D, 7.1, step 2: GHASH of the IV and of its length in bits. Messages with an IV of 12 bytes do not use it. */
    counter = dot(dot(reversed(iv), h) ^ 8 * 16, h);
    store(8, counter, 1);
    store(9, counter, 0);
    seal(iv_len, secrets[10]);
    if (iv_len == 16)
        check_counter();
    known = SECRETS;
}

/* Makes a call, which must not fail, and searches for secrets. */
#define STEP(call)                                                                                                      \
    do {                                                                                                                \
        snprintf(what, sizeof(what), "IV of %d bytes: %s", iv_len, #call);                                              \
        doing = what;                                                                                                   \
        clear_stack();                                                                                                  \
        watching = 1;                                                                                                   \
        must(call, "call");                                                                                             \
        watching = 0;                                                                                                   \
        search_stack();                                                                                                 \
    } while (0)

/* Long messages of GCM: the loops that need many powers of H, in a context and in its copy, and a forged message. */
static void use_gcm(const char *query, int iv_len)
{
    static unsigned char out[sizeof(text)], wrong[16];
    char what[300];
    int len;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", query);
    EVP_CIPHER_CTX *first = EVP_CIPHER_CTX_new(), *second = EVP_CIPHER_CTX_new();

    must(cipher != NULL && first != NULL && second != NULL, "GCM");
    find_secrets(iv_len);
    must(EVP_EncryptInit_ex(first, cipher, NULL, NULL, NULL)
            && EVP_CIPHER_CTX_ctrl(first, EVP_CTRL_AEAD_SET_IVLEN, iv_len, NULL),
        "IV length");
    STEP(EVP_EncryptInit_ex(first, NULL, NULL, secrets[0], iv));
    STEP(EVP_EncryptUpdate(first, out, &len, text, LONG));
    /* Enough updates for keystream that is computed ahead. */
    for (int i = 0; i < 8; i++)
        STEP(EVP_EncryptUpdate(first, out, &len, text, LONG));
    for (int i = 0; i < 60; i++)
        must(EVP_EncryptUpdate(first, out, &len, text, LONG), "update");
    STEP(EVP_CIPHER_CTX_copy(second, first));
    STEP(EVP_EncryptUpdate(second, out, &len, text, LONG + 37));
    STEP(EVP_EncryptFinal_ex(second, out, &len));
    STEP(EVP_EncryptFinal_ex(first, out, &len));
    STEP(EVP_DecryptInit_ex(first, NULL, NULL, secrets[0], iv));
    STEP(EVP_CIPHER_CTX_ctrl(first, EVP_CTRL_AEAD_SET_TAG, 16, wrong));
    STEP(EVP_DecryptUpdate(first, out, &len, ciphertext, sizeof(text)));
    STEP(EVP_DecryptFinal_ex(first, out, &len) <= 0);
    STEP((EVP_CIPHER_CTX_free(first), 1));
    STEP((EVP_CIPHER_CTX_free(second), 1));
    doing = "";
    EVP_CIPHER_free(cipher);
}

/* More contexts than those for which keystream is computed ahead. */
static void use_many(const char *name, const char *query)
{
    enum { MANY = 70, LAST = 66 };
    static unsigned char out[sizeof(text)];
    static EVP_CIPHER_CTX *contexts[MANY];
    int len, iv_len = 12;
    char what[300];
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, query);
    for (int i = 0; i < MANY; i++) {
        contexts[i] = EVP_CIPHER_CTX_new();
        must(EVP_EncryptInit_ex(contexts[i], cipher, NULL, secrets[0], iv), "init");
        for (int update = 0; update < 12; update++)
            if (i < LAST)
                must(EVP_EncryptUpdate(contexts[i], out, &len, text, LONG), "update");
            else
                STEP(EVP_EncryptUpdate(contexts[i], out, &len, text, LONG));
    }
    doing = "";
    for (int i = 0; i < MANY; i++)
        EVP_CIPHER_CTX_free(contexts[i]);
    EVP_CIPHER_free(cipher);
}

/* All writable memory, except the main thread's stack and the variables of this program. */
static void search_process(void)
{
    static char line[1000];
    /* Threads of the provider end their work. */
    usleep(100000);
    FILE *maps = fopen("/proc/self/maps", "r");
    must(maps != NULL, "/proc/self/maps");
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned char *begin, *end;
        char rights[5];
        must(sscanf(line, "%p-%p %4s", (void **)&begin, (void **)&end, rights) == 3, "/proc/self/maps");
        int is_ours = (begin <= secrets[0] && secrets[0] < end) || (begin <= text && text < end);
        if (rights[0] != 'r' || rights[1] != 'w' || strstr(line, "[stack]") != NULL || is_ours)
            continue;
        for (int i = 0; i < known; i++)
            if (holds(begin, end, i)) {
                printf("after all contexts were freed: %s in %s", secret_names[i], line);
                finds++;
            }
    }
    fclose(maps);
}

static void use(const char *name, const char *query)
{
    static const char *steps[] = { "init", "update", "final", "copy", "copy of the copy", "init again",
        "init of the copy", "free" };
    unsigned char data[80];
    char what[100];
    int len, xts = strstr(name, "XTS") != NULL;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, query);
    EVP_CIPHER_CTX *first = EVP_CIPHER_CTX_new(), *second = EVP_CIPHER_CTX_new(),
                   *third = EVP_CIPHER_CTX_new();

    must(cipher != NULL && first != NULL && second != NULL && third != NULL, name);
    memset(data, 5, sizeof(data));
    /* In static memory that is never freed; in XTS the key for data. */
    static unsigned char keys[32];
    memcpy(keys, secrets[0], 16);
    memset(keys + 16, 7, 16);
    for (int step = 0; step < 8; step++) {
        snprintf(what, sizeof(what), "%s: %s", name, steps[step]);
        doing = what;
        clear_stack();
        watching = 1;
        switch (step) {
        case 0:
            must(EVP_EncryptInit_ex(first, cipher, NULL, keys, iv), "init");
            break;
        case 1:
            must(EVP_EncryptUpdate(first, data, &len, data, xts ? 33 : 37), "update");
            break;
        case 2:
            must(EVP_EncryptFinal_ex(first, data, &len), "final");
            break;
        case 3:
            must(EVP_CIPHER_CTX_copy(second, first), "copy");
            break;
        case 4:
            must(EVP_CIPHER_CTX_copy(third, second), "copy");
            break;
        case 5:
            must(EVP_DecryptInit_ex(first, NULL, NULL, keys, iv), "init again");
            break;
        case 6:
            must(EVP_DecryptInit_ex(third, NULL, NULL, keys, iv), "init of the copy");
            break;
        case 7:
            EVP_CIPHER_CTX_free(first);
            EVP_CIPHER_CTX_free(second);
            EVP_CIPHER_CTX_free(third);
            break;
        }
        watching = 0;
        search_stack();
    }
    EVP_CIPHER_free(cipher);
}

static int is_development_build(const OSSL_PROVIDER *provider)
{
    const char *build = NULL;
    OSSL_PARAM params[] = { OSSL_PARAM_utf8_ptr("buildinfo", (char **)&build, 0), OSSL_PARAM_END };
    must(OSSL_PROVIDER_get_params(provider, params) && build != NULL, "buildinfo");
    return strcmp(build, "development build") == 0;
}

int main(int argc, char **argv)
{
    static const char *names[] = { "AES-128-ECB", "AES-128-CBC", "AES-128-CFB", "AES-128-CFB8", "AES-128-CFB1",
        "AES-128-OFB", "AES-128-CTR", "AES-128-XTS", "AES-128-GCM", "AES-128-CCM" };
    char query[100];

    if (argc < 2)
        return 2;
    doing = "control";
    clear_stack();
    leave_on_stack();
    search_stack();
    void *block = malloc(100);
    volatile unsigned char *inside = block;
    for (int i = 0; i < 16; i++)
        inside[33 + i] = secrets[2][i];
    watching = 1;
    free(block);
    watching = 0;
    if (finds != 2) {
        printf("the control found %d of 2\n", finds);
        return 2;
    }
    finds = 0;

    if (argc > 2)
        must(OSSL_PROVIDER_set_default_search_path(NULL, argv[2]), "search path");
    OSSL_PROVIDER *provider = OSSL_PROVIDER_load(NULL, argv[1]);
    must(OSSL_PROVIDER_load(NULL, "default") != NULL && provider != NULL, "load");
    snprintf(query, sizeof(query), "provider=%s", argv[1]);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        use(names[i], query);
    memset(text, 5, sizeof(text));
    /* The long loops of a development build keep some variables on the stack that release builds keep in registers. */
    if (is_development_build(provider)) {
        printf("a development build: without long messages\n");
    } else {
        use_gcm(query, 12);
        use_gcm(query, 16);
        search_process();
        use_many("AES-128-GCM", query);
        use_many("AES-128-CTR", query);
    }
    search_process();
    printf("%d finds\n", finds);
    return finds != 0;
}
