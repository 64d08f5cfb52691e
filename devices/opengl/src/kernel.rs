//! The list of kernels.

use crate::blocks::{self, Design, Stage, Tables, Variant};

#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) constant_time: bool,
    pub(crate) family: Family,
}

/// The families of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// The shader performs the mode, on tiles of blocks.
    Fixslice,
    /// The shader performs the block cipher, on one block in each vertex or fragment. The host performs the other steps of the mode, such
    /// as chaining.
    Blocks(blocks::Kernel),
}

const fn gems(stage: Stage, tables: Tables) -> Family {
    Family::Blocks(blocks::Kernel::Gems(Design { stage, tables, has_mode: false }))
}

/// A kernel with one program for both directions.
const fn gems_by_mode(stage: Stage) -> Family {
    Family::Blocks(blocks::Kernel::Gems(Design { stage, tables: Tables::Textures, has_mode: true }))
}

/// All kernels, the default first.
pub(crate) const KERNELS: [Kernel; 10] = [
    Kernel {
        name: "opengl/fixslice",
        description: "bit planes of two blocks in each fragment, ShiftRows left out; OpenGL 3.3 or OpenGL ES 3.0",
        constant_time: true,
        family: Family::Fixslice,
    },
    Kernel {
        name: "opengl/gems-vertex",
        description: "GPU Gems 3, chapter 36: one block in each vertex, transform feedback, tables in textures",
        constant_time: false,
        family: gems(Stage::Vertex, Tables::Textures),
    },
    Kernel {
        name: "opengl/gems-fragment",
        description: "GPU Gems 3, chapter 36: one block in each fragment, tables in textures",
        constant_time: false,
        family: gems(Stage::Fragment, Tables::Textures),
    },
    Kernel {
        name: "opengl/gems-vertex-uniform",
        description: "opengl/gems-vertex with tables in uniform arrays",
        constant_time: false,
        family: gems(Stage::Vertex, Tables::Uniforms),
    },
    Kernel {
        name: "opengl/gems-fragment-uniform",
        description: "opengl/gems-fragment with tables in uniform arrays",
        constant_time: false,
        family: gems(Stage::Fragment, Tables::Uniforms),
    },
    Kernel {
        name: "opengl/gems-vertex-mode",
        description: "opengl/gems-vertex with both directions in one program, selected by a uniform",
        constant_time: false,
        family: gems_by_mode(Stage::Vertex),
    },
    Kernel {
        name: "opengl/gems-fragment-mode",
        description: "opengl/gems-fragment with both directions in one program, selected by a uniform",
        constant_time: false,
        family: gems_by_mode(Stage::Fragment),
    },
    Kernel {
        name: "opengl/6800",
        description: "the engine for the GeForce 6800: floats only, all logic in lookup textures; encryption",
        constant_time: false,
        family: Family::Blocks(blocks::Kernel::Geforce6800(Variant::Tables)),
    },
    Kernel {
        name: "opengl/6800-mix2",
        description: "opengl/6800 with multiplication by x as arithmetic",
        constant_time: false,
        family: Family::Blocks(blocks::Kernel::Geforce6800(Variant::Mix2)),
    },
    Kernel {
        name: "opengl/6800-xor2",
        description: "opengl/6800 with exclusive or as arithmetic",
        constant_time: false,
        family: Family::Blocks(blocks::Kernel::Geforce6800(Variant::Xor2)),
    },
];
