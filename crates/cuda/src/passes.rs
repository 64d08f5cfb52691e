//! The passes: each has a file with its launches, in order.

use lockstep_core::work::Pass;
use lockstep_core::{KeySize, Result};

use crate::gpu::{Gpu, Stream};
use crate::kernel::{Family, Part, Tiling, helper, one_each};
use crate::launch::{Launch, Parameters};
use crate::machine::{Entry, Shape};

mod cbc;
mod cfb;
mod chain;
mod ctr;
mod ecb;
mod gcm;
mod ghash;
mod xts;

pub(crate) use chain::Chain;
pub(crate) use gcm::{Extra, Gcm, fused};
pub(crate) use ghash::{Hashing, Level, Levels, by_messages};

/// How the device does a pass.
pub(crate) struct Plan {
    /// The kernel of the family that does or prepares the work.
    pub(crate) part: Part,
    /// How the work is divided.
    pub(crate) kind: Kind,
    /// True if the ciphertext block before each tile must be saved first.
    pub(crate) edges: bool,
    /// True if chaining states are encrypted first, under a second key.
    pub(crate) tweaks: bool,
    /// Queues the launches.
    pub(crate) run: fn(&Batch<'_>) -> Result<()>,
}

/// How work is divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In tiles; a segment may be cut at the border of any.
    Tiles,
    /// One lane for each message, from its beginning to its end.
    Chain(Chain),
    /// In tiles counted from the end of each message, in levels. Data are only read.
    Ghash,
    /// In tiles, and hashed as by GHASH.
    Gcm { opens: bool },
}

impl Kind {
    /// True if messages are hashed.
    pub(crate) fn hashes(self) -> bool {
        matches!(self, Kind::Ghash | Kind::Gcm { .. })
    }
}

/// The plan of a pass, if there is one.
pub(crate) fn plan(pass: Pass) -> Option<&'static Plan> {
    match pass {
        Pass::EcbEncrypt => Some(&ecb::ENCRYPT),
        Pass::EcbDecrypt => Some(&ecb::DECRYPT),
        Pass::Ctr => Some(&ctr::CTR),
        Pass::Ctr32 => Some(&ctr::CTR32),
        Pass::CbcDecrypt => Some(&cbc::DECRYPT),
        Pass::Cfb128Decrypt => Some(&cfb::DECRYPT),
        Pass::XtsEncrypt => Some(&xts::ENCRYPT),
        Pass::XtsDecrypt => Some(&xts::DECRYPT),
        Pass::Ghash => Some(&ghash::GHASH),
        serial => chain::plan(serial),
    }
}

/// Segments on the device, and their tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiled {
    pub(crate) tiling: Tiling,
    pub(crate) segments: u64,
    pub(crate) first_tile: u64,
    pub(crate) tiles: u64,
    pub(crate) count: u32,
}

/// Blocks that are encrypted before the pass: for XTS the chaining states; for GHASH a zero block under each key; for GCM
/// these and the first counter of each message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tweaks {
    /// Segments over the blocks, by key.
    pub(crate) over: Tiled,
    /// The blocks: chaining states in the order of the segments, or zero blocks in the order of the keys.
    pub(crate) states: u64,
}

/// Work that is described on the device and ready to be launched.
pub(crate) struct Batch<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) stream: &'a Stream,
    pub(crate) family: &'static Family,
    pub(crate) size: KeySize,
    pub(crate) work: Tiled,
    pub(crate) tweaks: Option<Tweaks>,
    /// Expanded keys, each for both directions.
    pub(crate) schedules: u64,
    /// 16 bytes for each tile if the plan has edges; for chains the bit planes of round keys.
    pub(crate) scratch: u64,
    /// For GHASH and GCM.
    pub(crate) hashing: Option<&'a Hashing>,
    /// For GCM.
    pub(crate) gcm: Option<Gcm>,
    /// Bytes of data, for the counters.
    pub(crate) bytes: u64,
}

impl Batch<'_> {
    /// Expands consecutive raw keys.
    pub(crate) fn expand(&self, keys: u64, count: u32) -> Result<()> {
        let parameters = Parameters::default().long(keys).long(self.schedules).word(count);
        self.launch(self.family.expand(self.size), one_each(count.into()), &parameters, 0)
    }

    /// Launches a kernel of the family over all segments.
    fn work(&self, part: Part) -> Result<()> {
        self.over(&self.work, part, self.bytes)
    }

    fn over(&self, tiled: &Tiled, part: Part, bytes: u64) -> Result<()> {
        let shape = tiled.tiling.shape(self.gpu.limits(), tiled.tiles);
        let entry = tiled.tiling.entry(part, self.size);
        self.launch(entry, shape, &self.parameters(tiled, tiled.tiling.option), bytes)
    }

    /// Saves the block before each tile.
    fn edges(&self) -> Result<()> {
        let parameters = self.parameters(&self.work, self.work.tiling.tile as u32);
        self.launch(helper::EDGES, one_each(self.work.tiles), &parameters, 0)
    }

    /// Encrypts the blocks that the pass begins with, and returns their address.
    fn prelude(&self) -> Result<u64> {
        let Some(tweaks) = &self.tweaks else { return Ok(0) };
        self.over(&tweaks.over, Part::EcbEncrypt, 0)?;
        Ok(tweaks.states)
    }

    /// Encrypts the chaining states of all segments.
    fn tweaks(&self) -> Result<()> {
        let Some(tweaks) = &self.tweaks else { return Ok(()) };
        self.prelude()?;
        let parameters =
            Parameters::default().long(self.work.segments).long(tweaks.states).word(self.work.count);
        self.launch(helper::SET_REGISTERS, one_each(self.work.count.into()), &parameters, 0)
    }

    fn parameters(&self, tiled: &Tiled, option: u32) -> Parameters {
        let &Tiled { segments, first_tile, tiles, count, .. } = tiled;
        let (schedules, scratch) = (self.schedules, self.scratch);
        Launch { segments, first_tile, schedules, scratch, tiles, count, option }.parameters()
    }

    pub(crate) fn launch(
        &self,
        entry: Entry,
        shape: Option<Shape>,
        parameters: &Parameters,
        bytes: u64,
    ) -> Result<()> {
        let shape = shape
            .ok_or_else(|| self.gpu.failed("the work is too large for one launch: submit less at once"))?;
        if shape.grid == 0 {
            return Ok(());
        }
        self.gpu.launch(self.stream, entry, shape, parameters.bytes(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_of_a_family_has_a_plan() {
        for family in &crate::kernel::FAMILIES {
            for pass in Pass::ALL {
                assert!(!family.does(pass) || plan(pass).is_some(), "{} {pass:?}", family.name);
            }
        }
    }
}
