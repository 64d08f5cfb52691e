//! XTS (SP 800-38E, IEEE 1619): each update is a data unit, and the IV is the number of the data unit.

use lockstep::hazmat::inline::{Block, Span, advance_tweak};
use lockstep::hazmat::mode::incremental::BlockIo;
use lockstep::hazmat::mode::xts::MAX_DATA_UNIT;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::raw::Raw;
use super::{Cipher, Common};
use crate::key::{ContextKey, Runner};
use crate::libcrypto::{Buffers, GetParam, Parameters, list};
use crate::reason::{Outcome, Reason};

/// A context of XTS.
#[derive(Clone)]
pub(crate) struct Xts {
    /// With the data key.
    raw: Raw,
    tweak_key: Option<ContextKey>,
}

impl Cipher for Xts {
    const SETTABLE: Parameters = list!(KeyLen);

    fn new(common: Common) -> Self {
        Xts { raw: Raw::new(common), tweak_key: None }
    }

    fn common(&self) -> &Common {
        &self.raw.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| self.clone())
    }

    #[inline(always)]
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.raw.common.observe_init(key, iv);
        let halves = key.map(|key| key.split_at(key.len() / 2));
        // If both halves of the key are equal, the ciphertext reveals the first tweak (FIPS guidance to SP 800-38E). Decryption
        // is still allowed, so that existing data can be decrypted.
        let are_equal = |(data, tweak): (&[u8], &[u8])| {
            let differences = data.iter().zip(tweak).fold(0, |all, (a, b)| all | (a ^ b));
            bool::from(differences.ct_eq(&0))
        };
        if encrypts && halves.is_some_and(are_equal) {
            return Err(Reason::XtsEqualKeys);
        }
        self.raw.set_iv(iv)?;
        self.raw.common.encrypts = encrypts;
        self.raw.replace_key(halves.map(|(data, _)| data), !encrypts)?;
        if let Some((_, tweak)) = halves {
            ContextKey::replace(&mut self.tweak_key, &self.raw.common.instance.resources, tweak, false)?;
        }
        Ok(())
    }

    /// False: each update processes a whole data unit, so no part of a message is stored.
    fn holds_text(&self) -> bool {
        false
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let key = self.raw.key()?;
        let Some(tweak_key) = &self.tweak_key else { return Err(Reason::NoKey) };
        if !self.raw.has_iv {
            return Err(Reason::NoIv);
        }
        let iv = &self.raw.iv;
        let len = data.len();
        if len < 16 {
            return Err(Reason::XtsTooShort);
        }
        if len as u64 > MAX_DATA_UNIT {
            return Err(Reason::XtsTooLong);
        }
        let encrypts = self.raw.common.encrypts;
        if len.is_multiple_of(16) {
            key.xts(encrypts, tweak_key, iv, None, data.whole()?)?;
        } else {
            steal(encrypts, key, tweak_key, iv, data)?;
        }
        Ok(len)
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        self.raw.get(param, &self.raw.iv)
    }
}

/// Processes a data unit that ends with a partial block, by ciphertext stealing. First, the last whole block is processed with
/// one of the last two tweaks. Then its first bytes change places with the partial block. Finally, the block is processed with
/// the second one of these two tweaks. Encryption uses the earlier tweak first, and decryption uses the later tweak first.
#[inline(never)]
fn steal(
    encrypts: bool,
    key: Runner<'_>,
    tweak_key: &ContextKey,
    iv: &Block,
    mut data: Buffers<'_>,
) -> Outcome<()> {
    let len = data.len();
    if data.room() < len {
        return Err(Reason::OutputTooSmall);
    }
    let single = |tweak: &mut Block, block: &mut [u8]| match encrypts {
        true => key.key.inline.xts_encrypt(tweak, Span::in_place(block)),
        false => key.key.inline.xts_decrypt(tweak, Span::in_place(block)),
    };
    let tail = len % 16;
    // The last whole block and the partial block start here.
    let end = len - tail - 16;
    let mut last = Zeroizing::new([0; 32]);
    data.read(end, &mut last[..16 + tail]);
    let mut tweak = [0; 16];
    let before = if encrypts { end + 16 } else { end };
    let outcome = key.xts(encrypts, tweak_key, iv, Some(&mut tweak), data.part(0, 0, before));
    outcome.inspect_err(|_| data.zero_output(len))?;
    let (block, partial) = last.split_at_mut(16);
    if encrypts {
        block.copy_from_slice(data.output_block(end));
    } else {
        let mut later = tweak;
        advance_tweak(&mut later, 1);
        single(&mut later, block);
    }
    block[..tail].swap_with_slice(&mut partial[..tail]);
    single(&mut tweak, block);
    data.write(end, &last[..16 + tail]);
    Ok(())
}
