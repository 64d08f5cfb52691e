/* Tests of the modes without authentication, the MACs and key wrap. `program vectors` compares their results with those of the reference
 * implementation. */
#include "check.h"

enum { LEN = 96, COUNT = 4 };

static void one_mode(const lockstep_engine *engine, int cipher)
{
    lockstep_cipher_key *key = new_cipher_key(cipher, 32);
    uint8_t iv[16], data[LEN], out[LEN] = {0}, back[LEN] = {0};
    uint8_t ivs[COUNT][16], outs[COUNT][LEN] = {{0}};
    lockstep_cipher_message messages[COUNT];
    count_up(data, LEN, 9, 11);
    memset(iv, 5, 16);
    OK(lockstep_cipher_encrypt(engine, cipher, key, cipher == LOCKSTEP_CIPHER_ECB ? NULL : iv, data, LEN, out));
    memset(iv, 5, 16);
    OK(lockstep_cipher_decrypt(engine, cipher, key, cipher == LOCKSTEP_CIPHER_ECB ? NULL : iv, out, LEN, back));
    CHECK(memcmp(back, data, LEN) == 0 && memcmp(out, data, LEN) != 0);
    /* The second call continues the message of the first call. */
    if (cipher != LOCKSTEP_CIPHER_XTS) {
        memset(iv, 5, 16);
        OK(lockstep_cipher_encrypt(engine, cipher, key, iv, data, 32, back));
        OK(lockstep_cipher_encrypt(engine, cipher, key, iv, data + 32, LEN - 32, back + 32));
        CHECK(memcmp(back, out, LEN) == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        memset(ivs[i], 5, 16);
        messages[i] = (lockstep_cipher_message){key, ivs[i], data, outs[i], LEN};
    }
    OK(lockstep_cipher_encrypt_batch(engine, cipher, messages, COUNT));
    for (int i = 0; i < COUNT; i++) {
        CHECK(memcmp(outs[i], out, LEN) == 0);
        memset(ivs[i], 5, 16);
        messages[i].input = outs[i];
    }
    OK(lockstep_cipher_decrypt_batch(engine, cipher, messages, COUNT));
    CHECK(memcmp(outs[COUNT - 1], data, LEN) == 0);
    lockstep_cipher_key_free(key);
}

static void other_modes(const lockstep_engine *engine)
{
    lockstep_cipher_key *key = new_cipher_key(LOCKSTEP_CIPHER_CTR, 24), *pair = new_cipher_key(LOCKSTEP_CIPHER_XTS, 32);
    lockstep_hctr2_key *hctr2, *none;
    uint8_t data[64], out[80], back[64], iv[16] = {0}, macs[2][16], tweak[3] = {1, 2, 3};
    size_t len;
    count_up(data, 64, 1, 1);
    OK(lockstep_hctr2_key_new(engine, key, &hctr2));
    OK(lockstep_hctr2_encrypt(engine, hctr2, tweak, 3, data, 64, out));
    OK(lockstep_hctr2_decrypt(engine, hctr2, tweak, 3, out, 64, out));
    CHECK(memcmp(out, data, 64) == 0);
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_hctr2_encrypt(engine, hctr2, tweak, 3, data, 15, out));
    for (int variant = LOCKSTEP_CTS_CS1; variant <= LOCKSTEP_CTS_CS3; variant++) {
        memset(iv, 0, 16);
        OK(lockstep_cbc_cts_encrypt(engine, variant, key, iv, data, 61, out));
        memset(iv, 0, 16);
        OK(lockstep_cbc_cts_decrypt(engine, variant, key, iv, out, 61, back));
        CHECK(memcmp(back, data, 61) == 0);
    }
    memset(out, 7, sizeof out);
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_cbc_cts_encrypt(engine, LOCKSTEP_CTS_CS1, key, iv, data, 15, out));
    CHECK(is_all(out, sizeof out, 7));
    FAILS(LOCKSTEP_ERROR_ARGUMENT, lockstep_cbc_cts_encrypt(engine, 4, key, iv, data, 16, out));
    OK(lockstep_key_wrap(engine, key, data, 64, out, 72, &len));
    CHECK(len == 72);
    OK(lockstep_key_unwrap(engine, key, out, 72, back, 64, &len));
    CHECK(len == 64 && memcmp(back, data, 64) == 0);
    OK(lockstep_key_wrap_padded(engine, key, data, 13, out, 24, &len));
    CHECK(len == 24);
    OK(lockstep_key_unwrap_padded(engine, key, out, 24, out, 24, &len));
    CHECK(len == 13 && memcmp(out, data, 13) == 0);
    FAILS(LOCKSTEP_ERROR_OUTPUT, lockstep_key_wrap(engine, key, data, 64, out, 71, &len));
    OK(lockstep_key_wrap(engine, key, data, 64, out, 72, &len));
    out[8] ^= 1;
    memset(back, 9, 64);
    FAILS(LOCKSTEP_ERROR_AUTHENTICATION, lockstep_key_unwrap(engine, key, out, 72, back, 64, &len));
    CHECK(is_all(back, 64, 9));
    lockstep_mac_message messages[2] = {{key, data, 64, macs[0]}, {key, data, 64, macs[1]}};
    OK(lockstep_cmac_batch(engine, messages, 2));
    OK(lockstep_cmac(engine, key, data, 64, out));
    CHECK(lockstep_is_equal(macs[0], out, 16) == 1 && lockstep_is_equal(macs[1], out, 16) == 1);
    out[15] ^= 1;
    CHECK(lockstep_is_equal(macs[0], out, 16) == 0 && lockstep_is_equal(NULL, out, 16) == 0);
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_cmac(engine, pair, data, 64, out));
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_hctr2_key_new(engine, pair, &none));
    CHECK(none == NULL);
    lockstep_key *ccm = new_key(LOCKSTEP_AEAD_CCM, 16);
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_gmac(engine, ccm, iv, 12, data, 64, out, 16));
    lockstep_key_free(ccm);
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_CTR, pair, iv, data, 16, out));
    FAILS(LOCKSTEP_ERROR_KEY, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_XTS, key, iv, data, 16, out));
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_CBC, key, iv, data, 17, out));
    FAILS(LOCKSTEP_ERROR_LENGTH, lockstep_cipher_encrypt(engine, LOCKSTEP_CIPHER_XTS, pair, iv, data, 15, out));
    lockstep_hctr2_key_free(hctr2);
    lockstep_cipher_key_free(key);
    lockstep_cipher_key_free(pair);
}

void test_cipher(const lockstep_engine *engine)
{
    for (int cipher = LOCKSTEP_CIPHER_ECB; cipher <= LOCKSTEP_CIPHER_XTS; cipher++)
        one_mode(engine, cipher);
    other_modes(engine);
}
