//! Encryption and decryption of the records of TLS 1.3 (RFC 8446, section 5.2).

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce,
    OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm,
    UnsupportedOperationError, make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

use crate::gcm::{Gcm, GcmKey, TAG};

impl Tls13AeadAlgorithm for Gcm {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Records { key: self.key(&key), iv })
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Records { key: self.key(&key), iv })
    }

    fn key_len(&self) -> usize {
        self.key_len
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.secrets(key, iv)
    }
}

/// The key of one direction.
struct Records {
    key: GcmKey,
    iv: Iv,
}

impl MessageEncrypter for Records {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        number: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let total = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(total);
        // The type of the content follows the content, and is encrypted with it.
        let (nonce, aad) = (Nonce::new(&self.iv, number).0, make_tls13_aad(total));
        self.key.seal_record(&nonce, &aad, &message.payload, &[message.typ.into()], &mut payload)?;
        // RFC 8446, section 5.1: every encrypted record has this type and the version of TLS 1.2.
        Ok(OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload))
    }

    fn encrypted_payload_len(&self, len: usize) -> usize {
        len + 1 + TAG
    }
}

impl MessageDecrypter for Records {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let payload = &mut message.payload;
        let aad = make_tls13_aad(payload.len());
        let len = self.key.open(&Nonce::new(&self.iv, number).0, &aad, payload)?;
        payload.truncate(len);
        message.into_tls13_unpadded_message()
    }
}
