/* Tests of the authenticated modes with one message, with batches and with wrong tags. */
#include "check.h"

struct aead {
    int mode;
    size_t key_len, nonce_len;
};

static const struct aead MODES[] = {
    {LOCKSTEP_AEAD_GCM, 16, 12}, {LOCKSTEP_AEAD_GCM, 24, 7},      {LOCKSTEP_AEAD_GCM_SIV, 32, 12},
    {LOCKSTEP_AEAD_OCB, 16, 15}, {LOCKSTEP_AEAD_SIV, 64, 0},      {LOCKSTEP_AEAD_SIV, 32, 16},
    {LOCKSTEP_AEAD_CCM, 16, 13}, {LOCKSTEP_AEAD_XAES_256_GCM, 32, 24},
    {LOCKSTEP_AEAD_EAX, 16, 16}, {LOCKSTEP_AEAD_EAX, 32, 21},
};

enum { LEN = 100, COUNT = 5 };

static void one_message(const lockstep_engine *engine, const struct aead *it)
{
    lockstep_key *key = new_key(it->mode, it->key_len);
    uint8_t nonce[32], aad[20], data[LEN], sealed[LEN], opened[LEN], tag[16];
    count_up(nonce, sizeof nonce, 64, 1);
    count_up(aad, sizeof aad, 128, 1);
    count_up(data, LEN, 1, 7);
    for (size_t len = 0; len <= LEN; len += 33) {
        OK(lockstep_aead_seal(engine, key, nonce, it->nonce_len, aad, 20, data, len, sealed, tag, 16));
        OK(lockstep_aead_open(engine, key, nonce, it->nonce_len, aad, 20, sealed, len, tag, 16, opened));
        CHECK(memcmp(opened, data, len) == 0);
        /* Decrypts and encrypts in place. */
        OK(lockstep_aead_open(engine, key, nonce, it->nonce_len, aad, 20, sealed, len, tag, 16, sealed));
        CHECK(memcmp(sealed, data, len) == 0);
        OK(lockstep_aead_seal(engine, key, nonce, it->nonce_len, aad, 20, sealed, len, sealed, tag, 16));
        /* If the associated data are wrong, the output contains no plaintext. */
        memset(opened, 0xee, LEN);
        FAILS(LOCKSTEP_ERROR_AUTHENTICATION,
              lockstep_aead_open(engine, key, nonce, it->nonce_len, aad, 19, sealed, len, tag, 16, opened));
        CHECK(is_all(opened, len, 0) && is_all(opened + len, LEN - len, 0xee));
        tag[3] ^= 1;
        FAILS(LOCKSTEP_ERROR_AUTHENTICATION,
              lockstep_aead_open(engine, key, nonce, it->nonce_len, aad, 20, sealed, len, tag, 16, sealed));
        CHECK(is_all(sealed, len, 0));
    }
    /* A pointer may be NULL if its length is 0. */
    OK(lockstep_aead_seal(engine, key, nonce, it->nonce_len, NULL, 0, NULL, 0, NULL, tag, 16));
    OK(lockstep_aead_open(engine, key, nonce, it->nonce_len, NULL, 0, NULL, 0, tag, 16, NULL));
    lockstep_key_free(key);
}

static void batch(const lockstep_engine *engine, const struct aead *it)
{
    lockstep_key *key = new_key(it->mode, it->key_len);
    lockstep_message messages[COUNT];
    lockstep_bytes aad[COUNT];
    uint8_t nonces[COUNT][32], data[COUNT][LEN], sealed[COUNT][LEN], tags[COUNT][16], single[LEN], tag[16];
    for (size_t i = 0; i < COUNT; i++) {
        count_up(nonces[i], 32, (unsigned)i, 1);
        count_up(data[i], LEN, (unsigned)i, 3);
        aad[i].data = data[i];
        aad[i].len = i;
        messages[i] = (lockstep_message){
            .key = key, .nonce = nonces[i], .nonce_len = it->nonce_len, .aad = &aad[i], .aad_count = i > 0,
            .input = data[i], .output = sealed[i], .len = 20 * i, .tag = tags[i], .tag_len = 16, .status = 77};
    }
    OK(lockstep_aead_seal_batch(engine, messages, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(messages[i].status == LOCKSTEP_STATUS_DONE);
        OK(lockstep_aead_seal(engine, key, nonces[i], it->nonce_len, data[i], i, data[i], 20 * i, single, tag, 16));
        CHECK(memcmp(single, sealed[i], 20 * i) == 0 && memcmp(tag, tags[i], 16) == 0);
        messages[i].input = sealed[i];
    }
    tags[3][0] ^= 128;
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_aead_open_batch(engine, messages, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        if (i == 3) {
            CHECK(messages[i].status == LOCKSTEP_STATUS_AUTHENTICATION_FAILED && is_all(sealed[i], 60, 0));
        } else {
            CHECK(messages[i].status == LOCKSTEP_STATUS_DONE && memcmp(sealed[i], data[i], 20 * i) == 0);
        }
    }
    OK(lockstep_aead_seal_batch(engine, NULL, 0));
    lockstep_key_free(key);
}

/* The keys of a batch may have different sizes, but keys of different modes are an error. */
static void mixed_keys(const lockstep_engine *engine)
{
    lockstep_key *small = new_key(LOCKSTEP_AEAD_GCM, 16), *large = new_key(LOCKSTEP_AEAD_GCM, 32);
    lockstep_key *other = new_key(LOCKSTEP_AEAD_CCM, 16);
    uint8_t nonce[12] = {0}, data[2][16] = {{0}}, tags[2][16];
    lockstep_message messages[2] = {
        {.key = small, .nonce = nonce, .nonce_len = 12, .input = data[0], .output = data[0], .len = 16, .tag = tags[0], .tag_len = 16},
        {.key = large, .nonce = nonce, .nonce_len = 12, .input = data[1], .output = data[1], .len = 16, .tag = tags[1], .tag_len = 16},
    };
    OK(lockstep_aead_seal_batch(engine, messages, 2));
    OK(lockstep_aead_open_batch(engine, messages, 2));
    CHECK(is_all(data[0], 32, 0));
    CHECK(messages[0].status == LOCKSTEP_STATUS_DONE && messages[1].status == LOCKSTEP_STATUS_DONE);
    /* A refused call sets all statuses to PENDING, so that the statuses of the previous call do not remain. */
    messages[1].nonce = NULL;
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_open_batch(engine, messages, 2));
    CHECK(messages[0].status == LOCKSTEP_STATUS_PENDING && messages[1].status == LOCKSTEP_STATUS_PENDING);
    messages[1].nonce = nonce;
    OK(lockstep_aead_seal_batch(engine, messages, 2));
    FAILS(LOCKSTEP_ERROR_NULL, lockstep_aead_open_batch(NULL, messages, 2));
    CHECK(messages[0].status == LOCKSTEP_STATUS_PENDING && messages[1].status == LOCKSTEP_STATUS_PENDING);
    OK(lockstep_aead_open_batch(engine, messages, 2));
    lockstep_bytes strings[2] = {{nonce, 1}, {nonce, 2}};
    messages[1].aad = strings;
    messages[1].aad_count = 2;
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_aead_seal_batch(engine, messages, 2));
    messages[1].aad_count = 0;
    messages[1].key = other;
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_aead_seal_batch(engine, messages, 2));
    CHECK(strstr(lockstep_last_error_message(), "CCM") != NULL);
    CHECK(messages[0].status == LOCKSTEP_STATUS_PENDING && is_all(data[0], 32, 0));
    lockstep_key_free(small);
    lockstep_key_free(large);
    lockstep_key_free(other);
}

void test_aead(const lockstep_engine *engine)
{
    for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++) {
        one_message(engine, &MODES[i]);
        batch(engine, &MODES[i]);
    }
    mixed_keys(engine);
}

static void print_bytes(const char *name, size_t number, const uint8_t *bytes, size_t len)
{
    printf("%s %zu ", name, number);
    for (size_t i = 0; i < len; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

/* The bytes of keys count up from 0, those of nonces from 64, and those of associated data from 128. The data are 1, 8, 15, ...
 * tests/capi/vectors.rs computes the same results. */
void print_vectors(const lockstep_engine *engine)
{
    uint8_t nonce[32], aad[20], data[LEN], out[LEN + 16], iv[16];
    size_t out_len;
    count_up(nonce, sizeof nonce, 64, 1);
    count_up(aad, sizeof aad, 128, 1);
    count_up(data, LEN, 1, 7);
    for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++) {
        lockstep_key *key = new_key(MODES[i].mode, MODES[i].key_len);
        OK(lockstep_aead_seal(engine, key, nonce, MODES[i].nonce_len, aad, 20, data, LEN, out, out + LEN, 16));
        print_bytes("aead", i, out, LEN + 16);
        lockstep_key_free(key);
    }
    for (int cipher = LOCKSTEP_CIPHER_ECB; cipher <= LOCKSTEP_CIPHER_XTS; cipher++) {
        lockstep_cipher_key *key = new_cipher_key(cipher, 32);
        memcpy(iv, nonce, 16);
        OK(lockstep_cipher_encrypt(engine, cipher, key, iv, data, 96, out));
        print_bytes("encrypt", (size_t)cipher, out, 96);
        memcpy(iv, nonce, 16);
        OK(lockstep_cipher_decrypt(engine, cipher, key, iv, data, 96, out));
        print_bytes("decrypt", (size_t)cipher, out, 96);
        lockstep_cipher_key_free(key);
    }
    lockstep_cipher_key *key = new_cipher_key(LOCKSTEP_CIPHER_ECB, 16);
    lockstep_key *gcm = new_key(LOCKSTEP_AEAD_GCM, 16);
    lockstep_hctr2_key *hctr2;
    OK(lockstep_cmac(engine, key, data, LEN, out));
    print_bytes("cmac", 0, out, 16);
    OK(lockstep_gmac(engine, gcm, nonce, 12, data, LEN, out, 16));
    print_bytes("gmac", 0, out, 16);
    OK(lockstep_key_wrap(engine, key, data, 32, out, sizeof out, &out_len));
    print_bytes("wrap", 0, out, out_len);
    OK(lockstep_key_wrap_padded(engine, key, data, 29, out, sizeof out, &out_len));
    print_bytes("wrap_padded", 0, out, out_len);
    OK(lockstep_hctr2_key_new(engine, key, &hctr2));
    OK(lockstep_hctr2_encrypt(engine, hctr2, aad, 20, data, LEN, out));
    print_bytes("hctr2", 0, out, LEN);
    for (int variant = LOCKSTEP_CTS_CS1; variant <= LOCKSTEP_CTS_CS3; variant++) {
        memcpy(iv, nonce, 16);
        OK(lockstep_cbc_cts_encrypt(engine, variant, key, iv, data, LEN, out));
        print_bytes("cts", (size_t)variant, out, LEN);
    }
    lockstep_hctr2_key_free(hctr2);
    lockstep_key_free(gcm);
    lockstep_cipher_key_free(key);
}
