//! The launches of each operation, in order.
//!
//! All addresses and counts that the launches of this module and its submodules pass to kernels are fields of a [`Batch`], or
//! are computed from them. The code that creates the batch guarantees that these addresses and counts are valid.
#![allow(unsafe_code, reason = "launches: the kernels get addresses of device memory")]

use std::ops::Deref;

use lockstep_core::{Error, KeySize, Result};
use lockstep_gpu_host::Kind;
use lockstep_gpu_host::compose::gcm_of_chunk;

use crate::gpu::{Gpu, Stream};
use crate::kernel::{Family, Part, Tiling, helper, one_each};
use crate::launch::{Launch, Parameters};
use crate::machine::{Entry, Shape};

mod aead;
mod chain;
mod gcm;
mod ghash;
mod ocb;

pub(crate) use aead::{Aead, Extra};
pub(crate) use chain::scratch as chain_scratch;
pub(crate) use ghash::{Hashing, Level, Levels, by_matrices, by_messages};
pub(crate) use ocb::Ocb;

/// Segments on the device, and their tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiled {
    pub(crate) tiling: Tiling,
    pub(crate) segments: u64,
    pub(crate) first_tile: u64,
    pub(crate) tiles: u64,
    pub(crate) count: u32,
}

/// The auxiliary blocks: blocks other than the data, which are encrypted by ECB before the pass. For XTS, the auxiliary blocks
/// are the chaining states, whose encryptions are the tweaks. For GHASH, they are a zero block for each key. For GCM and OCB3,
/// they are a zero block for each key, and for each message the first counter block (GCM) or the nonce block (OCB3).
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuxiliaryBlocks {
    /// Segments that contain the blocks, one for each run of blocks with the same key.
    pub(crate) over: Tiled,
    /// The address of the blocks. For XTS, the chaining states are in the order of the segments. For other
    /// operations, the zero blocks come first, in the order of the keys.
    pub(crate) blocks: u64,
}

/// Work whose descriptions are in device memory.
pub(crate) struct Parts<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) stream: &'a Stream,
    pub(crate) family: &'static Family,
    pub(crate) size: KeySize,
    pub(crate) work: Tiled,
    pub(crate) auxiliary: Option<AuxiliaryBlocks>,
    /// The address of the consecutive raw keys, and their number.
    pub(crate) keys: (u64, u32),
    /// The address of the expanded keys, each for both directions.
    pub(crate) schedules: u64,
    /// The address of scratch memory. For OCB3, and if tiles read the block before them, this memory has 16 bytes for each tile. For serial
    /// modes, it has the bit planes of the round keys.
    pub(crate) scratch: u64,
    /// For GHASH and GCM.
    pub(crate) hashing: Option<&'a Hashing>,
    /// For GCM and OCB3.
    pub(crate) aead: Option<Aead>,
    /// For OCB3.
    pub(crate) ocb: Option<Ocb>,
    /// Bytes of data, for the counters.
    pub(crate) bytes: u64,
}

/// Work whose descriptions are in device memory and are valid.
pub(crate) struct Batch<'a>(Parts<'a>);

impl<'a> Deref for Batch<'a> {
    type Target = Parts<'a>;

    fn deref(&self) -> &Parts<'a> {
        &self.0
    }
}

impl<'a> Batch<'a> {
    /// # Safety
    /// The addresses refer to memory of the device with the size that the counts and the operation require. When the kernels
    /// run, this memory contains the descriptions, and the same is true for the addresses and counts in the descriptions. All
    /// of this memory stays allocated until an event that is recorded on the stream after the last launch has passed, or until
    /// the machine has been synchronised.
    pub(crate) unsafe fn new(parts: Parts<'a>) -> Batch<'a> {
        Batch(parts)
    }

    /// Queues all launches of an operation, after [`Batch::expand`].
    pub(crate) fn run(&self, kind: Kind) -> Result<()> {
        match kind {
            Kind::Tiles(tiles) => {
                if kind.looks_back() {
                    // If the data are processed in place, a tile reads a block that the work on the previous tile overwrites.
                    // These blocks are therefore saved.
                    self.edges()?;
                }
                self.encrypt_tweaks()?;
                self.work(Part::of(tiles))
            }
            Kind::Chain(chain) => chain::run(self, chain),
            Kind::Ghash => {
                self.encrypt_auxiliary()?;
                ghash::hash(self)
            }
            Kind::Polyval => ghash::hash(self),
            Kind::Gcm { opens } => gcm_of_chunk(&mut &*self, opens),
            Kind::Ocb { opens } => ocb::run(self, opens),
        }
    }

    /// Expands the raw keys.
    pub(crate) fn expand(&self) -> Result<()> {
        let (keys, count) = self.keys;
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
        self.launch(entry, shape, &self.parameters(tiled, tiled.tiling.option(self.size)), bytes)
    }

    /// Saves the edges: the ciphertext blocks before the tiles.
    fn edges(&self) -> Result<()> {
        let parameters = self.parameters(&self.work, self.work.tiling.tile as u32);
        self.launch(helper::EDGES, one_each(self.work.tiles), &parameters, 0)
    }

    /// Encrypts the blocks that [`AuxiliaryBlocks`] lists for the operation, in place.
    fn encrypt_auxiliary(&self) -> Result<()> {
        let Some(auxiliary) = &self.auxiliary else { return Ok(()) };
        self.over(&auxiliary.over, Part::EcbEncrypt, 0)
    }

    /// For XTS: encrypts the chaining states of all segments. The results are the first tweaks, and replace the states.
    fn encrypt_tweaks(&self) -> Result<()> {
        let Some(auxiliary) = &self.auxiliary else { return Ok(()) };
        self.encrypt_auxiliary()?;
        let parameters =
            Parameters::default().long(self.work.segments).long(auxiliary.blocks).word(self.work.count);
        self.launch(helper::SET_STATES, one_each(self.work.count.into()), &parameters, 0)
    }

    fn parameters(&self, tiled: &Tiled, option: u32) -> Parameters {
        let &Tiled { segments, first_tile, tiles, count, .. } = tiled;
        let (schedules, scratch) = (self.schedules, self.scratch);
        Launch { segments, first_tile, schedules, scratch, tiles, count, option }.parameters()
    }

    /// Returns the error of a batch without a description that its operation needs, which is a bug of this crate. Without this error, the
    /// caller would not notice that the work was not done.
    fn undescribed(&self) -> Error {
        self.gpu
            .failed("the work was queued without a description that its operation needs: please report this")
    }

    /// Launches a kernel with parameters of this batch.
    fn launch(&self, entry: Entry, shape: Option<Shape>, parameters: &Parameters, bytes: u64) -> Result<()> {
        // SAFETY: only this module and its submodules call this function, and they make the parameters from the fields of
        // the batch, which are valid.
        unsafe { self.launch_with(entry, shape, parameters, bytes) }
    }

    /// Launches a kernel with parameters that need not consist of fields of this batch.
    ///
    /// # Safety
    /// The requirements of [`Gpu::launch`].
    pub(crate) unsafe fn launch_with(
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
        // SAFETY: the caller meets the conditions of this function.
        unsafe { self.gpu.launch(self.stream, entry, shape, parameters.bytes(), bytes) }
    }
}
