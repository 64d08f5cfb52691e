//! libcrypto's functions that the tests call and for which the crate `openssl` has no wrapper: parameters, controls,
//! copies, raw updates, MACs, library contexts. Only functions of OpenSSL 3.0 are declared, so that one test executable
//! links with every 3.x and 4.x. (`EVP_CIPHER_CTX_dup`, of 3.2, is `new` followed by `copy`.)

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

// Links libcrypto, which the crate's build script finds.
use openssl_sys as _;

macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub(crate) struct $name { _opaque: [u8; 0] }
    )* };
}
opaque!(OSSL_LIB_CTX OSSL_PROVIDER EVP_CIPHER EVP_CIPHER_CTX EVP_MAC EVP_MAC_CTX);

/// A parameter: the public structure of `openssl/core.h`. A null key ends a list.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct OSSL_PARAM {
    pub(crate) key: *const c_char,
    pub(crate) data_type: c_uint,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) return_size: usize,
}

pub(crate) const OSSL_PARAM_INTEGER: c_uint = 1;
pub(crate) const OSSL_PARAM_UNSIGNED_INTEGER: c_uint = 2;
pub(crate) const OSSL_PARAM_UTF8_STRING: c_uint = 4;
pub(crate) const OSSL_PARAM_OCTET_STRING: c_uint = 5;
pub(crate) const OSSL_PARAM_OCTET_PTR: c_uint = 7;
pub(crate) const OSSL_PARAM_UNMODIFIED: usize = usize::MAX;

pub(crate) const EVP_CTRL_AEAD_SET_IVLEN: c_int = 0x9;
pub(crate) const EVP_CTRL_AEAD_GET_TAG: c_int = 0x10;
pub(crate) const EVP_CTRL_AEAD_SET_TAG: c_int = 0x11;
pub(crate) const EVP_CTRL_AEAD_SET_IV_FIXED: c_int = 0x12;
pub(crate) const EVP_CTRL_GCM_IV_GEN: c_int = 0x13;
pub(crate) const EVP_CTRL_CCM_SET_L: c_int = 0x14;
pub(crate) const EVP_CTRL_AEAD_TLS1_AAD: c_int = 0x16;
pub(crate) const EVP_CTRL_GCM_SET_IV_INV: c_int = 0x18;

unsafe extern "C" {
    pub(crate) fn OpenSSL_version(what: c_int) -> *const c_char;

    pub(crate) fn OSSL_LIB_CTX_new() -> *mut OSSL_LIB_CTX;
    pub(crate) fn OSSL_LIB_CTX_load_config(library: *mut OSSL_LIB_CTX, file: *const c_char) -> c_int;
    pub(crate) fn OSSL_LIB_CTX_free(library: *mut OSSL_LIB_CTX);
    pub(crate) fn OSSL_PROVIDER_set_default_search_path(
        library: *mut OSSL_LIB_CTX,
        path: *const c_char,
    ) -> c_int;
    pub(crate) fn OSSL_PROVIDER_load(library: *mut OSSL_LIB_CTX, name: *const c_char) -> *mut OSSL_PROVIDER;
    pub(crate) fn OSSL_PROVIDER_unload(provider: *mut OSSL_PROVIDER) -> c_int;
    pub(crate) fn OSSL_PROVIDER_self_test(provider: *const OSSL_PROVIDER) -> c_int;
    pub(crate) fn OSSL_PROVIDER_get0_name(provider: *const OSSL_PROVIDER) -> *const c_char;
    pub(crate) fn OSSL_PROVIDER_gettable_params(provider: *const OSSL_PROVIDER) -> *const OSSL_PARAM;
    pub(crate) fn OSSL_PROVIDER_get_params(provider: *const OSSL_PROVIDER, params: *mut OSSL_PARAM) -> c_int;

    pub(crate) fn EVP_set_default_properties(library: *mut OSSL_LIB_CTX, query: *const c_char) -> c_int;
    pub(crate) fn RAND_bytes_ex(
        library: *mut OSSL_LIB_CTX,
        out: *mut u8,
        n: usize,
        strength: c_uint,
    ) -> c_int;
    pub(crate) fn RAND_priv_bytes_ex(
        library: *mut OSSL_LIB_CTX,
        out: *mut u8,
        n: usize,
        strength: c_uint,
    ) -> c_int;

    pub(crate) fn ERR_clear_error();
    pub(crate) fn ERR_get_error_all(
        file: *mut *const c_char,
        line: *mut c_int,
        function: *mut *const c_char,
        data: *mut *const c_char,
        flags: *mut c_int,
    ) -> c_ulong;
    pub(crate) fn ERR_reason_error_string(error: c_ulong) -> *const c_char;

    pub(crate) fn EVP_CIPHER_fetch(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        query: *const c_char,
    ) -> *mut EVP_CIPHER;
    pub(crate) fn EVP_CIPHER_free(cipher: *mut EVP_CIPHER);
    pub(crate) fn EVP_CIPHER_get0_provider(cipher: *const EVP_CIPHER) -> *const OSSL_PROVIDER;
    pub(crate) fn EVP_CIPHER_get0_name(cipher: *const EVP_CIPHER) -> *const c_char;
    pub(crate) fn EVP_CIPHER_get0_description(cipher: *const EVP_CIPHER) -> *const c_char;
    pub(crate) fn EVP_CIPHER_is_a(cipher: *const EVP_CIPHER, name: *const c_char) -> c_int;
    pub(crate) fn EVP_CIPHER_get_nid(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_type(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_mode(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_flags(cipher: *const EVP_CIPHER) -> c_ulong;
    pub(crate) fn EVP_CIPHER_get_key_length(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_iv_length(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_block_size(cipher: *const EVP_CIPHER) -> c_int;
    pub(crate) fn EVP_CIPHER_get_params(cipher: *mut EVP_CIPHER, params: *mut OSSL_PARAM) -> c_int;
    pub(crate) fn EVP_CIPHER_gettable_params(cipher: *const EVP_CIPHER) -> *const OSSL_PARAM;
    pub(crate) fn EVP_CIPHER_gettable_ctx_params(cipher: *const EVP_CIPHER) -> *const OSSL_PARAM;
    pub(crate) fn EVP_CIPHER_settable_ctx_params(cipher: *const EVP_CIPHER) -> *const OSSL_PARAM;

    pub(crate) fn EVP_CIPHER_CTX_new() -> *mut EVP_CIPHER_CTX;
    pub(crate) fn EVP_CIPHER_CTX_free(ctx: *mut EVP_CIPHER_CTX);
    pub(crate) fn EVP_CIPHER_CTX_copy(to: *mut EVP_CIPHER_CTX, from: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_ctrl(
        ctx: *mut EVP_CIPHER_CTX,
        what: c_int,
        n: c_int,
        data: *mut c_void,
    ) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_set_padding(ctx: *mut EVP_CIPHER_CTX, padding: c_int) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_set_key_length(ctx: *mut EVP_CIPHER_CTX, n: c_int) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_key_length(ctx: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_iv_length(ctx: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_tag_length(ctx: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_num(ctx: *const EVP_CIPHER_CTX) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_set_num(ctx: *mut EVP_CIPHER_CTX, num: c_int) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_updated_iv(
        ctx: *mut EVP_CIPHER_CTX,
        out: *mut c_void,
        n: usize,
    ) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_original_iv(
        ctx: *mut EVP_CIPHER_CTX,
        out: *mut c_void,
        n: usize,
    ) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_get_params(ctx: *mut EVP_CIPHER_CTX, params: *mut OSSL_PARAM) -> c_int;
    pub(crate) fn EVP_CIPHER_CTX_set_params(ctx: *mut EVP_CIPHER_CTX, params: *const OSSL_PARAM) -> c_int;
    pub(crate) fn EVP_CipherInit_ex2(
        ctx: *mut EVP_CIPHER_CTX,
        cipher: *const EVP_CIPHER,
        key: *const u8,
        iv: *const u8,
        encrypt: c_int,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub(crate) fn EVP_CipherUpdate(
        ctx: *mut EVP_CIPHER_CTX,
        out: *mut u8,
        written: *mut c_int,
        data: *const u8,
        n: c_int,
    ) -> c_int;
    pub(crate) fn EVP_CipherFinal_ex(ctx: *mut EVP_CIPHER_CTX, out: *mut u8, written: *mut c_int) -> c_int;
    pub(crate) fn EVP_Cipher(ctx: *mut EVP_CIPHER_CTX, out: *mut u8, data: *const u8, n: c_uint) -> c_int;

    pub(crate) fn EVP_MAC_fetch(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        query: *const c_char,
    ) -> *mut EVP_MAC;
    pub(crate) fn EVP_MAC_free(mac: *mut EVP_MAC);
    pub(crate) fn EVP_MAC_CTX_new(mac: *mut EVP_MAC) -> *mut EVP_MAC_CTX;
    pub(crate) fn EVP_MAC_CTX_free(ctx: *mut EVP_MAC_CTX);
    pub(crate) fn EVP_MAC_CTX_dup(ctx: *const EVP_MAC_CTX) -> *mut EVP_MAC_CTX;
    pub(crate) fn EVP_MAC_init(
        ctx: *mut EVP_MAC_CTX,
        key: *const u8,
        n: usize,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub(crate) fn EVP_MAC_update(ctx: *mut EVP_MAC_CTX, data: *const u8, n: usize) -> c_int;
    pub(crate) fn EVP_MAC_final(
        ctx: *mut EVP_MAC_CTX,
        out: *mut u8,
        written: *mut usize,
        room: usize,
    ) -> c_int;
}
