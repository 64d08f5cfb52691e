//! GCM of one message that is too long for a submission, pass by pass (SP 800-38D, 7.1 and 7.2).

use lockstep_core::data::Data;
use lockstep_core::gcm::counter_block;
use lockstep_core::gcm::{lengths_block, settle};
use lockstep_core::work::{AeadMessage, Pass, Segment, Status};
use lockstep_core::{Block, Key, Result};
use zeroize::Zeroizing;

use crate::chunk::{with_input, with_output};
use crate::gpu::Gpu;
use crate::lane::Lanes;
use crate::memory::download;

/// Seals or opens a message; `run` does a pass, and leaves no half of one. On an error the output is to be thrown away if it
/// has `begun`.
pub(crate) fn by_passes(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    gpu: &Gpu,
    lanes: &Lanes,
    opens: bool,
    message: &mut AeadMessage<'_>,
    begun: &mut bool,
) -> Result<()> {
    let (key, nonce) = (message.key, message.nonce);
    let mut hash = Zeroizing::new(Block::default());
    if !opens {
        count(&run, key, counter_block(nonce, 2), message.data.reborrow())?;
        *begun = true;
    }
    let len = message.data.len();
    let (whole, mut last) = (len / 16 * 16, Block::default());
    hashed(&run, key, &mut hash, message.aad)?;
    let mut hash_input = |input: &[u8]| {
        last[..len - whole].copy_from_slice(&input[whole..]);
        hashed(&run, key, &mut hash, &input[..whole])
    };
    let mut outcome = Ok(());
    match &mut message.data {
        Data::Device { from, to, .. } => {
            let ciphertext = if opens { from } else { to };
            let blocks = ciphertext.slice(0..whole);
            let data = Data::on_device(blocks.clone(), blocks)?;
            run(Pass::Ghash, Segment { key, tweak: None, state: &mut hash, data })?;
            let place = gpu.place(&ciphertext.slice(whole..len))?;
            download(gpu, lanes, &place, &mut last[..len - whole])?;
        }
        data if opens => with_input(data, |input| outcome = hash_input(input)),
        data => with_output(data, |output| outcome = hash_input(output)),
    }
    outcome?;
    hashed(&run, key, &mut hash, &last[..len - whole])?;
    hashed(&run, key, &mut hash, &lengths_block(message.aad.len() as u64, len as u64))?;
    count(&run, key, counter_block(nonce, 1), Data::in_place(&mut hash[..]))?;
    message.status = settle(&mut message.tag, &hash);
    if message.status == Status::Done {
        if opens {
            count(&run, key, counter_block(nonce, 2), message.data.reborrow())?;
            *begun = true;
        }
        return Ok(());
    }
    *begun = true;
    match &mut message.data {
        Data::Device { to, .. } => gpu.zero(to),
        data => {
            with_output(data, |output| output.fill(0));
            Ok(())
        }
    }
}

fn count(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    key: &Key,
    mut state: Block,
    data: Data<'_>,
) -> Result<()> {
    run(Pass::Ctr32, Segment { key, tweak: None, state: &mut state, data })
}

/// Hashes bytes, filled up with zeros.
fn hashed(
    run: impl Fn(Pass, Segment<'_>) -> Result<()>,
    key: &Key,
    hash: &mut Block,
    bytes: &[u8],
) -> Result<()> {
    let (whole, rest) = bytes.split_at(bytes.len() / 16 * 16);
    let mut last = Block::default();
    last[..rest.len()].copy_from_slice(rest);
    for blocks in [whole, if rest.is_empty() { &[] } else { &last }] {
        run(Pass::Ghash, Segment { key, tweak: None, state: hash, data: Data::read_only(blocks) })?;
    }
    Ok(())
}
