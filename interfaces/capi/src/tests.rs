use lockstep::aead::Aead;
use lockstep::hazmat::mode::cbc_cts::Variant;
use lockstep::hazmat::mode::{Cipher, Direction};

use crate::{aead, cbc_cts, cipher, device, engine, ffi, file_key, hctr2, parquet, reader};

/// The header promises that several threads may use these objects at the same time.
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

/// The C interface numbers the values of a list of the library by their positions, so the order of the list must not change.
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
