//! Protection of the packets and headers of QUIC (RFC 9001, section 5).

use lockstep::hazmat::inline::InlineKey;
use lockstep::hazmat::stack;
use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};

use crate::gcm::{Gcm, GcmKey, TAG};

/// The maximum number of packets that a key encrypts (RFC 9001, section 6.6).
const MAX_PACKETS: u64 = 1 << 23;
/// The maximum number of packets that are not authentic, for one key (RFC 9001, section 6.6).
const MAX_FORGERIES: u64 = 1 << 52;
/// The number of bytes of a sample of ciphertext: one block (RFC 9001, section 5.4.3).
const SAMPLE: usize = 16;

impl Algorithm for Gcm {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        Box::new(Packets { key: self.key(&key), iv })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        let headers = Headers::new(*self, &key);
        stack::wipe_below();
        headers
    }

    fn aead_key_len(&self) -> usize {
        self.key_len
    }
}

/// The key for the packets of one direction.
struct Packets {
    key: GcmKey,
    iv: Iv,
}

impl Packets {
    fn seal(&self, nonce: Nonce, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        let mut tag = [0; TAG];
        self.key.seal_shared(&nonce.0, header, payload, &mut tag)?;
        Ok(Tag::from(&tag[..]))
    }

    fn open<'a>(&self, nonce: Nonce, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let len = self.key.open_shared(&nonce.0, header, payload)?;
        Ok(&payload[..len])
    }
}

impl PacketKey for Packets {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.seal(Nonce::new(&self.iv, number), header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        self.seal(Nonce::for_path(path, &self.iv, number), header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open(Nonce::new(&self.iv, number), header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open(Nonce::for_path(path, &self.iv, number), header, payload)
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        MAX_PACKETS
    }

    fn integrity_limit(&self) -> u64 {
        MAX_FORGERIES
    }
}

/// The key for the headers of one direction.
struct Headers(InlineKey);

impl Headers {
    /// A separate function, so that its stack frame can be wiped.
    #[inline(never)]
    fn new(gcm: Gcm, key: &AeadKey) -> Box<Headers> {
        let key = InlineKey::for_directions(gcm.kernel, key.as_ref(), false);
        Box::new(Headers(key.expect("rustls makes keys of the length that the suite states")))
    }

    /// Adds or removes the protection of a header (RFC 9001, section 5.4.1). The length of the packet number is in the two lowest bits of
    /// the first byte without protection.
    fn apply(
        &self,
        sample: &[u8],
        is_protected: bool,
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let mut mask: [u8; SAMPLE] =
            sample.try_into().map_err(|_| Error::General("sample of invalid length".into()))?;
        self.0.encrypt_block(&mut mask);
        let [first_mask, mask @ ..] = *mask.first_chunk::<5>().expect("a block has more bytes");
        if packet_number.len() > mask.len() {
            return Err(Error::General("packet number too long".into()));
        }
        let is_long_header = *first & 0x80 != 0;
        let first_mask = first_mask & if is_long_header { 0x0f } else { 0x1f };
        let plain = if is_protected { *first ^ first_mask } else { *first };
        *first ^= first_mask;
        let len = usize::from(plain & 3) + 1;
        packet_number.iter_mut().zip(mask).take(len).for_each(|(byte, mask)| *byte ^= mask);
        Ok(())
    }
}

impl HeaderProtectionKey for Headers {
    fn encrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.apply(sample, false, first, packet_number)
    }

    fn decrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.apply(sample, true, first, packet_number)
    }

    fn sample_len(&self) -> usize {
        SAMPLE
    }
}
