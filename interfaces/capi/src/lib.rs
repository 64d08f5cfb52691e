//! The C interface of Lockstep. `include/lockstep.h` is written from this crate by cbindgen, and docs/c.md is its manual.
//!
//! | module | contents |
//! |---|---|
//! | [`error`] | error codes, their texts, and the message of the thread |
//! | [`engine`] | the engine, its options and devices |
//! | [`aead`] | authenticated modes: keys, one message, batches |
//! | [`cipher`] | modes without authentication: keys, one message, batches |
//! | [`mac`], [`key_wrap`], [`hctr2`], [`cbc_cts`] | CMAC and GMAC; key wrap; HCTR2; CBC with ciphertext stealing |
//! | [`file_key`], [`buffer`], [`stream`], [`mod@file`], [`reader`] | the file format: keys, buffers, streams, files, random access |
//! | [`device`], [`device_work`], [`device_table`] | device memory; work on it; messages that arrays in device memory describe |
//! | [`parquet`], [`parquet_modules`] | encrypted Parquet files; modules of such files in host or device memory |
//! | `ffi` | the contract with C; pointers as references and slices; panics as error codes |
//!
//! Each function catches panics, checks its pointers and lengths, and returns a code of [`error`]. The only state of the
//! library is the message of the last error of each thread.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the contract of pointers is the same for all functions: it is at the beginning of the header and of the module `ffi`"
)]
#![allow(clippy::too_many_arguments, reason = "functions of C take pointers and lengths separately")]
#![allow(clippy::missing_safety_doc, reason = "as above")]

pub mod aead;
pub mod buffer;
pub mod cbc_cts;
pub mod cipher;
pub mod device;
pub mod device_table;
pub mod device_work;
pub mod engine;
pub mod error;
mod ffi;
pub mod file;
pub mod file_key;
pub mod hctr2;
pub mod key_wrap;
pub mod mac;
pub mod parquet;
pub mod parquet_modules;
pub mod reader;
pub mod stream;

use std::ffi::c_char;

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use lockstep::aead::Aead;
    use lockstep::hazmat::mode::cbc_cts::Variant;
    use lockstep::hazmat::mode::{Cipher, Direction};

    use crate::{aead, cbc_cts, cipher, device, engine, ffi, file_key, hctr2, parquet, reader};

    /// The header states that all threads may use these objects at the same time.
    #[test]
    fn objects_are_shared() {
        fn assert_shared<T: Send + Sync>() {}
        assert_shared::<engine::Engine>();
        assert_shared::<aead::Key>();
        assert_shared::<cipher::CipherKey>();
        assert_shared::<hctr2::Hctr2Key>();
        assert_shared::<file_key::FileKey>();
        assert_shared::<reader::Reader>();
        assert_shared::<parquet::ParquetReader>();
        assert_shared::<device::DeviceBuffer>();
    }

    /// Numbers count the values of a list in the library, whose order therefore never changes.
    #[test]
    fn numbers_stand_for_their_values() {
        let aeads = [
            (aead::LOCKSTEP_AEAD_GCM, Aead::Gcm),
            (aead::LOCKSTEP_AEAD_GCM_SIV, Aead::GcmSiv),
            (aead::LOCKSTEP_AEAD_OCB, Aead::Ocb),
            (aead::LOCKSTEP_AEAD_SIV, Aead::Siv),
            (aead::LOCKSTEP_AEAD_CCM, Aead::Ccm),
            (aead::LOCKSTEP_AEAD_XAES_256_GCM, Aead::Xaes),
            (aead::LOCKSTEP_AEAD_EAX, Aead::Eax),
        ];
        assert_eq!(aeads.len(), Aead::ALL.len());
        for (number, mode) in aeads {
            assert_eq!(aead::mode(number).unwrap(), mode);
        }
        let ciphers = [
            (cipher::LOCKSTEP_CIPHER_ECB, Cipher::Ecb),
            (cipher::LOCKSTEP_CIPHER_CBC, Cipher::Cbc),
            (cipher::LOCKSTEP_CIPHER_PCBC, Cipher::Pcbc),
            (cipher::LOCKSTEP_CIPHER_CFB, Cipher::Cfb128),
            (cipher::LOCKSTEP_CIPHER_CFB8, Cipher::Cfb8),
            (cipher::LOCKSTEP_CIPHER_CFB1, Cipher::Cfb1),
            (cipher::LOCKSTEP_CIPHER_OFB, Cipher::Ofb),
            (cipher::LOCKSTEP_CIPHER_CTR, Cipher::Ctr),
            (cipher::LOCKSTEP_CIPHER_XTS, Cipher::Xts),
        ];
        for (number, mode) in ciphers {
            assert_eq!(cipher::mode(number).unwrap(), mode);
        }
        assert_eq!(cipher::direction(cipher::LOCKSTEP_ENCRYPT).unwrap(), Direction::Encrypt);
        assert_eq!(cipher::direction(cipher::LOCKSTEP_DECRYPT).unwrap(), Direction::Decrypt);
        let variants = [
            (cbc_cts::LOCKSTEP_CTS_CS1, Variant::Cs1),
            (cbc_cts::LOCKSTEP_CTS_CS2, Variant::Cs2),
            (cbc_cts::LOCKSTEP_CTS_CS3, Variant::Cs3),
        ];
        for (number, variant) in variants {
            assert_eq!(cbc_cts::variant(number).unwrap(), variant);
        }
        for wrong in [i32::MIN, -1, 0, 4] {
            assert!(ffi::numbered(&Variant::ALL, 1, wrong, "").is_err());
        }
    }
}
