//! Exports the programs for hosts other than this crate, such as a browser.

use lockstep_core::KeySize;
use lockstep_core::work::{Operation, Pass};

use crate::blocks;
use crate::egl::Interface;
use crate::fixslice;
use crate::gl::{self, Sources};
use crate::kernel::{Family, KERNELS};

/// A program for OpenGL ES 3.0 and WebGL 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedProgram {
    /// The kernel, such as `opengl/fixslice`.
    pub kernel: &'static str,
    /// The name of the pass in [`Pass`], such as `EcbEncrypt`.
    pub pass: String,
    /// The bits of the key. `None` if the program is for all key sizes.
    pub key_bits: Option<usize>,
    /// The vertex shader.
    pub vertex: String,
    /// The fragment shader.
    pub fragment: String,
    /// The output of the vertex shader that transform feedback records.
    pub feedback: Option<&'static str>,
    /// The names of the uniforms.
    pub uniforms: &'static [&'static str],
    /// The uniforms of tables, in texture units or uniform arrays, each with the name of its table in [`exported_tables`].
    pub tables: Vec<(&'static str, &'static str)>,
}

/// The programs of all kernels, as [`crate::OpenGlDevice`] compiles them for OpenGL ES if all messages of a call have the
/// same key.
pub fn exported_programs() -> Vec<ExportedProgram> {
    KERNELS.iter().flat_map(programs_of).collect()
}

/// The tables that the programs of GPU Gems 3 use, by name.
pub fn exported_tables() -> Vec<(&'static str, Vec<u32>)> {
    blocks::all_tables()
}

fn programs_of(kernel: &crate::kernel::Kernel) -> Vec<ExportedProgram> {
    let exported = |pass: Pass, size: Option<KeySize>, sources: Sources| ExportedProgram {
        kernel: kernel.name,
        pass: format!("{pass:?}"),
        key_bits: size.map(|size| 8 * size.bytes()),
        vertex: gl::version(Interface::Embedded).to_owned() + &sources.vertex,
        fragment: gl::version(Interface::Embedded).to_owned() + &sources.fragment,
        feedback: sources.feedback,
        uniforms: sources.uniforms,
        tables: Vec::new(),
    };
    let mut programs = Vec::new();
    match kernel.family {
        Family::Fixslice => {
            for pass in PASSES {
                for size in KeySize::ALL {
                    let program = fixslice::Program::of(Operation::Pass(pass), size, true);
                    programs.extend(program.map(|program| exported(pass, Some(size), program.sources())));
                }
            }
        }
        Family::Blocks(blocks::Kernel::Gems(design)) => {
            for (pass, decrypts) in [(Pass::EcbEncrypt, false), (Pass::EcbDecrypt, true)] {
                let (sources, tables) = blocks::exported_gems(design, decrypts, Interface::Embedded);
                programs.push(ExportedProgram { tables, ..exported(pass, None, sources) });
            }
        }
        Family::Blocks(blocks::Kernel::Geforce6800(variant)) => {
            for size in KeySize::ALL {
                let sources = blocks::geforce6800_sources(variant, size);
                programs.push(exported(Pass::EcbEncrypt, Some(size), sources));
            }
        }
    }
    programs
}

/// The passes of `opengl/fixslice`.
const PASSES: [Pass; 8] = [
    Pass::EcbEncrypt,
    Pass::EcbDecrypt,
    Pass::Ctr,
    Pass::Ctr32,
    Pass::CbcDecrypt,
    Pass::Cfb128Decrypt,
    Pass::XtsEncrypt,
    Pass::XtsDecrypt,
];
