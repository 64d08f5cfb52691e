//! Encryption and decryption of the records of TLS 1.2 (RFC 5288).

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, NONCE_LEN, Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
    Tls12AeadAlgorithm, UnsupportedOperationError, make_tls12_aad,
};
use rustls::{ConnectionTrafficSecrets, Error};

use crate::gcm::{Gcm, GcmKey, TAG};

/// The number of bytes of a nonce that each side derives with its key.
const SALT: usize = 4;
/// The number of bytes of a nonce that precede the ciphertext of a record.
const EXPLICIT: usize = NONCE_LEN - SALT;
/// The maximum number of bytes of the content of a record (RFC 5246, section 6.2.1).
const MAX_CONTENT: usize = 1 << 14;

impl Tls12AeadAlgorithm for Gcm {
    fn encrypter(&self, key: AeadKey, salt: &[u8], explicit: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Encrypter { key: self.key(&key), iv: first_nonce(salt, explicit) })
    }

    fn decrypter(&self, key: AeadKey, salt: &[u8]) -> Box<dyn MessageDecrypter> {
        let salt = salt.try_into().expect("rustls derives as many bytes as the suite states");
        Box::new(Decrypter { key: self.key(&key), salt })
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        KeyBlockShape { enc_key_len: self.key_len, fixed_iv_len: SALT, explicit_nonce_len: EXPLICIT }
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        salt: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.secrets(key, first_nonce(salt, explicit))
    }
}

/// The nonce of record 0. The nonce of any other record is the XOR of this nonce and the number of the record. Each record therefore has a
/// different nonce, as RFC 5288, section 3, requires.
fn first_nonce(salt: &[u8], explicit: &[u8]) -> Iv {
    let mut nonce = [0; NONCE_LEN];
    nonce[..SALT].copy_from_slice(salt);
    nonce[SALT..].copy_from_slice(explicit);
    nonce.into()
}

/// The key with which this side encrypts.
struct Encrypter {
    key: GcmKey,
    iv: Iv,
}

impl MessageEncrypter for Encrypter {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        number: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let len = message.payload.len();
        let mut payload = PrefixedPayload::with_capacity(self.encrypted_payload_len(len));
        let nonce = Nonce::new(&self.iv, number).0;
        payload.extend_from_slice(&nonce[SALT..]);
        let aad = make_tls12_aad(number, message.typ, message.version, len);
        self.key.seal_record(&nonce, &aad, &message.payload, &[], &mut payload)?;
        Ok(OutboundOpaqueMessage::new(message.typ, message.version, payload))
    }

    fn encrypted_payload_len(&self, len: usize) -> usize {
        EXPLICIT + len + TAG
    }
}

/// The key with which the other side encrypts.
struct Decrypter {
    key: GcmKey,
    salt: [u8; SALT],
}

impl MessageDecrypter for Decrypter {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let len = message.payload.len().checked_sub(EXPLICIT + TAG).ok_or(Error::DecryptError)?;
        let aad = make_tls12_aad(number, message.typ, message.version, len);
        let (explicit, sealed) = message.payload.split_at_mut(EXPLICIT);
        let mut nonce = [0; NONCE_LEN];
        nonce[..SALT].copy_from_slice(&self.salt);
        nonce[SALT..].copy_from_slice(explicit);
        let len = self.key.open(&nonce, &aad, sealed)?;
        if len > MAX_CONTENT {
            return Err(Error::PeerSentOversizedRecord);
        }
        Ok(message.into_plain_message_range(EXPLICIT..EXPLICIT + len))
    }
}
