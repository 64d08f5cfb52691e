//! Parameters: the gettable and settable ones include all that the default provider lists, unknown names are ignored,
//! and values of the wrong type or size are refused as by the default provider.

use crate::evp::{self, Context, ENCRYPT, Params};
use crate::harness::{ALGORITHMS, Mode, ours, theirs};
use crate::libcrypto::*;
use crate::script::key_and_iv;

type List = unsafe extern "C" fn(*const EVP_CIPHER) -> *const OSSL_PARAM;

/// Parameters that the default provider lists and this one does not have: those of the FIPS provider, those of
/// pipelines, and the one that makes the default's TLS 1.3 IV random.
const NOT_REQUIRED: [&str; 3] = ["fips-indicator", "pipeline-aead-tag", "iv-generated"];

fn missing(what: &str, list: List) {
    let mut missing = Vec::new();
    for algorithm in ALGORITHMS {
        let names = |cipher: &evp::Cipher| {
            // SAFETY: the cipher is live, and its list is a constant of its provider.
            unsafe { evp::names(list(cipher.raw())) }
        };
        let (ours, theirs) = (names(&ours(algorithm.name())), names(&theirs(algorithm.name())));
        for (name, kind) in theirs {
            // The default provider lists these for CCM and does not use them.
            let idle = ["tlsivgen", "tlsivinv"].contains(&name.as_str()) && algorithm.mode == Mode::Ccm;
            // The type is a pointer in the list of 3.0 and a string in the list of 4.0; libssl requests a pointer.
            let listed = ours.iter().any(|(other, k)| *other == name && (*k == kind || name == "tls-mac"));
            if !idle && !NOT_REQUIRED.contains(&name.as_str()) && !listed {
                missing.push(format!("{}: {name} of type {kind}", algorithm.name()));
            }
        }
    }
    assert!(missing.is_empty(), "{what}: {missing:#?}");
}

#[test]
fn gettable_and_settable_parameters_are_listed() {
    missing("gettable of a cipher", EVP_CIPHER_gettable_params);
    missing("gettable of a context", EVP_CIPHER_gettable_ctx_params);
    missing("settable of a context", EVP_CIPHER_settable_ctx_params);
}

/// Both providers' contexts with a key and an IV.
fn contexts(name: &str) -> [Context; 2] {
    [ours(name), theirs(name)].map(|cipher| {
        let mut context = cipher.context();
        let (key, iv) = key_and_iv(name);
        let iv = Some(&*iv).filter(|iv| !iv.is_empty());
        assert_eq!(context.init(Some(&cipher), ENCRYPT, Some(&key), iv, &Params::new()), 1);
        context
    })
}

#[test]
fn unknown_parameters_are_ignored() {
    for algorithm in ALGORITHMS {
        let [mut ours, mut theirs] = contexts(algorithm.name());
        for key in ["lockstep.nothing", "", "rounds", "speed"] {
            assert_eq!(ours.get_number(key), theirs.get_number(key), "{key}");
            assert_eq!(ours.get_bytes(key, 8), theirs.get_bytes(key, 8), "{key}");
            let set = |context: &mut Context| context.set(&Params::new().number(key, 1));
            assert_eq!(set(&mut ours), set(&mut theirs), "{key}");
        }
    }
}

#[test]
fn numbers_are_returned() {
    for algorithm in ALGORITHMS {
        let [mut ours, mut theirs] = contexts(algorithm.name());
        for key in ["keylen", "ivlen", "padding", "num", "taglen", "tlsaadpad", "mode", "use-bits"] {
            assert_eq!(ours.get_number(key), theirs.get_number(key), "{}: {key}", algorithm.name());
        }
    }
}

#[test]
fn bytes_are_returned_if_there_is_space_and_refused_otherwise() {
    for algorithm in ALGORITHMS {
        let [mut ours, mut theirs] = contexts(algorithm.name());
        // The initial IV of a CCM context is shorter than the cipher's IV length.
        let n = ours.get_number("ivlen").unwrap_or(0);
        for key in ["iv", "updated-iv"] {
            for room in [0, n.saturating_sub(1), n, n + 1, 64] {
                // The default provider's CCM returns as many bytes as there is space for, beyond its IV.
                if algorithm.mode == Mode::Ccm && room > n {
                    continue;
                }
                assert_eq!(
                    ours.get_bytes(key, room),
                    theirs.get_bytes(key, room),
                    "{}: {key} with room for {room} of {n}",
                    algorithm.name()
                );
            }
            if algorithm.mode != Mode::Ccm {
                assert_eq!(ours.get_pointer(key), theirs.get_pointer(key), "{}: {key}", algorithm.name());
            }
        }
    }
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    for algorithm in ALGORITHMS {
        for key in [
            "padding",
            "num",
            "use-bits",
            "tls-version",
            "tls-mac-size",
            "keylen",
            "ivlen",
            "tag",
            "tlsaad",
            "tlsivfixed",
        ] {
            for wrong in [
                Params::new().bytes(key, &[1; 8]),
                Params::new().string(key, "1"),
                Params::new().number(key, usize::MAX),
                Params::new().int(key, -1),
                Params::new().bytes(key, &[1; 3]),
            ] {
                let [mut ours, mut theirs] = contexts(algorithm.name());
                evp::clear_errors();
                let (got, expected) = (ours.set(&wrong), theirs.set(&wrong));
                assert_eq!(got, expected, "{}: {key} from {wrong:?}", algorithm.name());
            }
        }
        for key in ["padding", "num", "keylen", "ivlen", "taglen", "tlsaadpad"] {
            let [mut ours, mut theirs] = contexts(algorithm.name());
            // The parameter is requested as bytes.
            assert_eq!(ours.get_bytes(key, 8), theirs.get_bytes(key, 8), "{}: {key}", algorithm.name());
        }
        for key in ["iv", "updated-iv", "tag"] {
            let [mut ours, mut theirs] = contexts(algorithm.name());
            assert_eq!(ours.get_number(key), theirs.get_number(key), "{}: {key}", algorithm.name());
        }
    }
}

#[test]
fn init_accepts_parameters_with_the_key() {
    for name in ["AES-128-CBC", "AES-128-ECB"] {
        for on in [0, 1] {
            let run = |cipher: evp::Cipher| {
                let mut context = cipher.context();
                let (key, iv) = key_and_iv(name);
                let params = Params::new().number("padding", on);
                let iv = Some(&*iv).filter(|iv| !iv.is_empty());
                assert_eq!(context.init(Some(&cipher), ENCRYPT, Some(&key), iv, &params), 1);
                (context.update(&[1; 16]), context.finish(), context.get_number("padding"))
            };
            assert_eq!(run(ours(name)), run(theirs(name)));
        }
    }
}

/// An IV length that is passed together with an IV is set first. If the new IV is longer, the libcrypto of 3.0.2 passes only as many
/// bytes of it as the previous length, and passes the new length after them. The default provider then uses zeros for the missing bytes.
/// This provider refuses the data until an IV of the new length is set.
#[test]
fn init_accepts_an_iv_length_with_the_iv() {
    let name = "AES-128-GCM";
    let (key, iv) = ([1; 16], [2; 200]);
    let outcome =
        |context: &mut Context| (context.update(&[3; 50]), context.finish(), context.get_bytes("tag", 16));
    let together = |cipher: evp::Cipher, n: usize| {
        let mut context = cipher.context();
        let params = Params::new().number("ivlen", n);
        let returned = context.init(Some(&cipher), ENCRYPT, Some(&key), Some(&iv[..n]), &params);
        (returned == 1).then(|| outcome(&mut context))
    };
    let one_by_one = |cipher: evp::Cipher, n: usize| {
        let mut context = cipher.context();
        assert_eq!(context.init(Some(&cipher), ENCRYPT, None, None, &Params::new()), 1);
        let set = context.set(&Params::new().number("ivlen", n)) == 1;
        (set && context.init(None, -1, Some(&key), Some(&iv[..n]), &Params::new()) == 1)
            .then(|| outcome(&mut context))
    };
    let is_late = together(theirs(name), 16) != one_by_one(theirs(name), 16);
    for n in [1, 8, 12, 16, 60, 128, 129] {
        let right = one_by_one(theirs(name), n);
        let expected = if is_late && n != 12 { right.map(|_| (None, None, None)) } else { right };
        assert_eq!(together(ours(name), n), expected, "an IV of {n} bytes");
    }
}
