//! GCM of one message that is too long for a submission, pass by pass (SP 800-38D, 7.1 and 7.2).

use lockstep_core::data::{Data, HostData};
use lockstep_core::messages::counter;
use lockstep_core::mode::gcm::{lengths_block, settle};
use lockstep_core::work::{AeadMessage, Pass, Segment, Status};
use lockstep_core::{Block, Key, Result};
use zeroize::Zeroizing;

/// Seals or opens a message in host memory; `run` does a pass. On an error the output is to be thrown away.
pub(crate) fn by_passes(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    opens: bool,
    message: &mut AeadMessage<'_>,
) -> Result<()> {
    let (key, nonce) = (message.key, message.nonce);
    let Data::Host(data) = &mut message.data else { return Ok(()) };
    let mut hash = Zeroizing::new(Block::default());
    if !opens {
        count(&run, key, counter(nonce, 2), data.reborrow())?;
    }
    let ciphertext: &[u8] = match data {
        HostData::Copy { to, .. } if !opens => to,
        _ => data.input(),
    };
    for part in [message.aad, ciphertext] {
        let (whole, rest) = part.split_at(part.len() / 16 * 16);
        hashed(&run, key, &mut hash, whole)?;
        let mut last = Block::default();
        last[..rest.len()].copy_from_slice(rest);
        hashed(&run, key, &mut hash, if rest.is_empty() { &[] } else { &last })?;
    }
    let lengths = lengths_block(message.aad.len() as u64, ciphertext.len() as u64);
    hashed(&run, key, &mut hash, &lengths)?;
    count(&run, key, counter(nonce, 1), HostData::InPlace(&mut hash[..]))?;
    message.status = settle(&mut message.tag, &hash);
    match message.status {
        Status::Done if opens => count(&run, key, counter(nonce, 2), data.reborrow()),
        Status::Done => Ok(()),
        _ => {
            data.output().fill(0);
            Ok(())
        }
    }
}

fn count(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    key: &Key,
    mut register: Block,
    data: HostData<'_>,
) -> Result<()> {
    run(Pass::Ctr32, Segment { key, tweak: None, register: &mut register, data: Data::Host(data) })
}

fn hashed(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    key: &Key,
    hash: &mut Block,
    blocks: &[u8],
) -> Result<()> {
    run(Pass::Ghash, Segment { key, tweak: None, register: hash, data: Data::read_only(blocks) })
}
