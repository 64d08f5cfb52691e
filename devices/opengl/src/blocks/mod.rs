//! Kernels that follow published systems. The GPU encrypts or decrypts blocks, one block in each vertex or fragment, and the host performs
//! the other steps of the mode, such as chaining. The kernels use tables, so their time may depend on keys and data.

mod chunk;
mod geforce6800;
mod gems;
mod tables;

use lockstep_core::KeySize;
use lockstep_core::work::{Operation, Pass};
use zeroize::Zeroizing;

pub(crate) use chunk::{Chunk, Task};
pub use geforce6800::Steps;
pub(crate) use geforce6800::{Variant, sources as geforce6800_sources};
pub(crate) use gems::{Design, Stage, Tables, all_tables, exported as exported_gems};

use crate::gl::Gl;

/// A kernel of this family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// A kernel of GPU Gems 3, chapter 36.
    Gems(Design),
    /// A kernel of the OpenSSL engine for the GeForce 6800.
    Geforce6800(Variant),
}

impl Kernel {
    /// True if the kernel supports an operation. The kernels of the GeForce 6800 have no inverse cipher.
    pub(crate) fn supports(self, operation: Operation) -> bool {
        let Operation::Pass(pass) = operation else { return false };
        match self {
            Kernel::Gems(..) => matches!(
                pass,
                Pass::EcbEncrypt | Pass::EcbDecrypt | Pass::Ctr | Pass::Ctr32 | Pass::CbcDecrypt
            ),
            Kernel::Geforce6800(_) => matches!(pass, Pass::EcbEncrypt | Pass::Ctr | Pass::Ctr32),
        }
    }
}

/// Draws that differ from the usual draws, to reproduce the measurements of the OpenSSL engine for the GeForce 6800. Only
/// the kernels of this engine use these options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Experiment {
    /// If set, each chunk is drawn to textures of this width and height, from 1 to 1024, even if it has fewer blocks, as in
    /// the engine. If `None`, a draw has as many fragments as there are blocks.
    pub edge: Option<usize>,
    /// The steps of a draw that are executed.
    pub steps: Steps,
}

/// Blocks with the same key, which one draw encrypts or decrypts.
pub(crate) struct Run {
    pub(crate) kernel: Kernel,
    pub(crate) size: KeySize,
    /// True for the inverse cipher.
    pub(crate) decrypts: bool,
    /// The round keys in the order of the key schedule, 16 bytes each.
    pub(crate) round_keys: Zeroizing<Vec<u8>>,
    /// The blocks, which fill whole rows of a texture. [`Run::draw`] replaces them by the results.
    pub(crate) blocks: Zeroizing<Vec<u8>>,
    /// Number of blocks that are drawn, from the first on.
    pub(crate) drawn: usize,
    pub(crate) steps: Steps,
}

impl Run {
    /// Encrypts or decrypts the blocks.
    ///
    /// # Errors
    /// A text with the problem and the remedy. The blocks are then undefined.
    fn draw(&mut self, gl: &mut Gl) -> Result<(), String> {
        match self.kernel {
            Kernel::Gems(design) => gems::draw(self, design, gl),
            Kernel::Geforce6800(variant) => geforce6800::draw(self, variant, gl),
        }
    }
}
