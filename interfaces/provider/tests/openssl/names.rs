//! Every algorithm under every name, fetched from this provider, with the constants of the default provider.

use crate::evp::{self, ENCRYPT, Params};
use crate::harness::{ALGORITHMS, in_own_process, library, ours, subject, theirs};
use crate::libcrypto::*;

#[test]
fn every_name_and_oid_of_the_default_provider_fetches_this_one() {
    for algorithm in ALGORITHMS {
        for name in algorithm.names {
            // Checks the list itself.
            assert!(theirs(algorithm.name()).is_a(name), "{name}");
            // `ours` checks the provider.
            let cipher = ours(name);
            for other in algorithm.names {
                assert!(cipher.is_a(other), "{name} is not {other}");
            }
            assert_eq!(ours(&name.to_lowercase()).name(), ours(name).name());
        }
    }
}

#[test]
fn constants_equal_the_default_providers() {
    for algorithm in ALGORITHMS {
        let (ours, theirs) = (ours(algorithm.name()), theirs(algorithm.name()));
        assert!(ours.description().is_some_and(|text| !text.is_empty()), "{}", algorithm.name());
        let numbers = |cipher: &evp::Cipher| {
            let cipher = cipher.raw();
            // SAFETY: the cipher is live.
            unsafe {
                [
                    EVP_CIPHER_get_mode(cipher).into(),
                    EVP_CIPHER_get_key_length(cipher).into(),
                    EVP_CIPHER_get_iv_length(cipher).into(),
                    EVP_CIPHER_get_block_size(cipher).into(),
                    EVP_CIPHER_get_flags(cipher) as i64,
                    EVP_CIPHER_get_nid(cipher).into(),
                    EVP_CIPHER_get_type(cipher).into(),
                ]
            }
        };
        assert_eq!(
            numbers(&ours),
            numbers(&theirs),
            "{}: mode, key, iv, block, flags, nid, type",
            algorithm.name()
        );
    }
}

#[test]
fn constants_are_gettable_parameters() {
    for algorithm in ALGORITHMS {
        for key in
            ["mode", "keylen", "ivlen", "blocksize", "aead", "custom-iv", "cts", "tls-multi", "has-randkey"]
        {
            let ask = |cipher: &evp::Cipher| {
                let mut params = Params::new().number(key, 0xdead);
                // SAFETY: the cipher is live, and the list has an end.
                let returned = unsafe { EVP_CIPHER_get_params(cipher.raw(), params.raw_mut()) };
                (returned, params.returned(0), params.first_number())
            };
            assert_eq!(
                ask(&ours(algorithm.name())),
                ask(&theirs(algorithm.name())),
                "{}: {key}",
                algorithm.name()
            );
        }
    }
}

#[test]
fn other_algorithms_are_fetched_from_the_default_provider() {
    for name in ["CAMELLIA-128-CBC-CTS", "DES3-WRAP", "ChaCha20"] {
        assert_eq!(theirs(name).provider(), "default");
        if subject() != "default" {
            assert!(library().cipher(name, &crate::harness::query()).is_none(), "{name}");
        }
        assert!(library().cipher(name, "?provider=lockstep").is_some(), "{name}");
    }
}

#[test]
fn the_provider_has_name_and_version_and_passes_its_self_test() {
    let provider = library().last();
    let mut params = Params::new().number("status", 0);
    // SAFETY: the provider is loaded, and the list has an end.
    unsafe {
        assert_eq!(OSSL_PROVIDER_self_test(provider), 1);
        let gettable: Vec<String> =
            evp::names(OSSL_PROVIDER_gettable_params(provider)).into_iter().map(|(name, _)| name).collect();
        for wanted in ["name", "version", "buildinfo", "status"] {
            assert!(gettable.iter().any(|name| name == wanted), "{wanted} is not in {gettable:?}");
        }
        assert_eq!(OSSL_PROVIDER_get_params(provider, params.raw_mut()), 1);
    }
    assert_eq!(params.first_number(), 1);
}

/// Loads the provider and fetches a cipher with the crate `openssl`, as a Rust program would.
#[test]
fn the_crate_openssl_loads_and_fetches_it() {
    use openssl::cipher::Cipher;
    use openssl::cipher_ctx::CipherCtx;
    use openssl::lib_ctx::LibCtx;
    use openssl::provider::Provider;

    in_own_process("names::the_crate_openssl_loads_and_fetches_it", || {
        let context = LibCtx::new().unwrap();
        let modules = crate::harness::modules();
        Provider::set_default_search_path(Some(&context), modules.to_str().unwrap()).unwrap();
        let _default = Provider::load(Some(&context), "default").unwrap();
        let _subject = Provider::load(Some(&context), subject()).unwrap();
        let run = |query: &str| {
            let cipher = Cipher::fetch(Some(&context), "AES-256-GCM", Some(query)).unwrap();
            let mut ctx = CipherCtx::new().unwrap();
            ctx.encrypt_init(Some(&cipher), Some(&[7; 32]), Some(&[8; 12])).unwrap();
            let (mut out, mut tag) = (Vec::new(), [0; 16]);
            ctx.cipher_update(b"additional", None).unwrap();
            ctx.cipher_update_vec(&[9; 1000], &mut out).unwrap();
            ctx.cipher_final_vec(&mut out).unwrap();
            ctx.tag(&mut tag).unwrap();
            (out, tag)
        };
        assert_eq!(run(&crate::harness::query()), run("provider=default"));
    });
}

#[test]
fn a_property_query_selects_this_provider() {
    let library = crate::harness::new_library();
    library.prefer(&format!("?{}", crate::harness::query()));
    let library = std::sync::Arc::new(library);
    for algorithm in ALGORITHMS {
        let cipher = library.cipher(algorithm.name(), "").expect("it is there");
        assert_eq!(cipher.provider(), subject(), "{}", algorithm.name());
        let mut context = cipher.context();
        assert_eq!(context.init(Some(&cipher), ENCRYPT, None, None, &Params::new()), 1);
    }
}
