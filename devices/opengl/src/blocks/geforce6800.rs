//! The kernels of the OpenSSL engine for the GeForce 6800, a GPU without integers. They use floats only, and perform the
//! operations of AES by lookups in textures. In `mix2`, the multiplication by x is computed without a lookup. In `xor2`,
//! exclusive or is computed without a lookup.
#![allow(unsafe_code, reason = "functions of OpenGL")]

use glow::HasContext;
use lockstep_core::KeySize;
use zeroize::Zeroizing;

use super::Run;
use super::tables::{SBOX, doubled};
use crate::gl::{COVERING_VERTICES, Gl, Slot, Sources, WIDTH};

/// The operation that is computed by arithmetic and not by a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Variant {
    Tables,
    /// The multiplication by x.
    Mix2,
    /// Exclusive or.
    Xor2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Program {
    variant: Variant,
    size: KeySize,
}

const COLUMNS: [&str; 4] = ["column0", "column1", "column2", "column3"];
const UNIFORMS: [&str; 10] = [
    "column0",
    "column1",
    "column2",
    "column3",
    "round_keys",
    "width",
    "heights",
    "sbox_table",
    "xtime_table",
    "xor_table",
];

/// A lookup texture: its uniform and name, width and height, and content.
type Table = (&'static str, (usize, usize), fn() -> Vec<u8>);
const TABLES: [Table; 3] = [
    ("sbox_table", (256, 1), || SBOX.to_vec()),
    ("xtime_table", (256, 1), || (0..=255).map(doubled).collect()),
    ("xor_table", (256, 256), || (0..=255u8).flat_map(|b| (0..=255u8).map(move |a| a ^ b)).collect()),
];

impl Program {
    /// The shaders of the program.
    fn sources(self) -> Sources {
        Sources {
            vertex: COVERING_VERTICES.into(),
            fragment: self.fragment_shader(),
            feedback: None,
            uniforms: &UNIFORMS,
            round_keys: None,
        }
    }

    fn fragment_shader(self) -> String {
        let arithmetic = match self.variant {
            Variant::Tables => "",
            Variant::Mix2 => "#define XTIME_ARITHMETIC\n",
            Variant::Xor2 => "#define XOR_ARITHMETIC\n",
        };
        format!(
            "precision highp float;\nprecision highp sampler2D;\n{arithmetic}#define ROUNDS {}.0\n{}",
            self.size.rounds(),
            include_str!("../../shaders/geforce6800.glsl")
        )
    }
}

/// The shaders of a program, for a host that compiles them itself.
pub(crate) fn sources(variant: Variant, size: KeySize) -> Sources {
    Program { variant, size }.sources()
}

/// The steps of a draw that are executed. Experiments omit steps to measure the cost of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Steps {
    /// Copies the blocks to textures, draws, and copies the results back.
    #[default]
    All,
    /// Copies in both directions without a draw. The results are the input.
    Copies,
    /// Does not use the GPU. The results are the input.
    Nothing,
}

/// Encrypts the blocks of a run.
pub(super) fn draw(run: &mut Run, variant: Variant, gl: &mut Gl) -> Result<(), String> {
    if run.steps == Steps::Nothing {
        return Ok(());
    }
    let program = gl.compile(Program { variant, size: run.size }, |program, _| program.sources())?;
    for (name, size, content) in TABLES {
        if !gl.tables.contains_key(name) {
            let texture = gl.texture_2d(glow::R8, size, glow::RED, glow::UNSIGNED_BYTE, Some(&content()))?;
            gl.tables.insert(name, (texture, None));
        }
    }
    let mut columns = columns(&run.blocks);
    for (index, column) in (0..).zip(&columns) {
        gl.upload(Slot::Column(index), column)?;
        gl.make_room(Slot::ColumnResult(index), column.len() / (4 * WIDTH))?;
    }
    let mut keys = Zeroizing::new(vec![0; 4 * WIDTH]);
    keys[..run.round_keys.len()].copy_from_slice(&run.round_keys);
    gl.upload(Slot::ByteKeys, &keys)?;
    // Without a draw, the results are read from the textures of the input.
    let outputs = [0, 1, 2, 3].map(if run.steps == Steps::All { Slot::ColumnResult } else { Slot::Column });
    gl.attach(&outputs);
    if run.steps == Steps::All {
        let compiled = gl.compiled(&program);
        // SAFETY: the context is current, and the uniforms have these types.
        unsafe {
            gl.gl.use_program(Some(compiled.program));
            let [a, b, c, d] = [0, 1, 2, 3].map(|column| gl.rows_of(Slot::Column(column)) as f32);
            gl.gl.uniform_1_f32(compiled.uniform("width"), WIDTH as f32);
            gl.gl.uniform_4_f32(compiled.uniform("heights"), a, b, c, d);
            for (unit, (name, ..)) in (5..).zip(TABLES) {
                gl.gl.active_texture(glow::TEXTURE0 + unit);
                gl.gl.bind_texture(glow::TEXTURE_2D, Some(gl.tables[name].0));
                gl.gl.uniform_1_i32(compiled.uniform(name), unit as i32);
            }
        }
        let mut inputs: Vec<_> = COLUMNS.into_iter().zip([0, 1, 2, 3].map(Slot::Column)).collect();
        inputs.push(("round_keys", Slot::ByteKeys));
        gl.bind_inputs(compiled, &inputs);
        gl.cover(run.drawn);
    }
    for (index, (column, slot)) in columns.iter_mut().zip(outputs).enumerate() {
        gl.read(index, slot, column);
    }
    join(&columns, &mut run.blocks);
    gl.end_draw()
}

/// The columns of blocks. Each column has four bytes of each block.
fn columns(blocks: &[u8]) -> [Zeroizing<Vec<u8>>; 4] {
    std::array::from_fn(|index| {
        let mut column = Zeroizing::new(Vec::with_capacity(blocks.len() / 4));
        for block in blocks.as_chunks::<16>().0 {
            column.extend_from_slice(&block[4 * index..4 * index + 4]);
        }
        column
    })
}

/// The inverse of [`columns`].
fn join(columns: &[Zeroizing<Vec<u8>>; 4], blocks: &mut [u8]) {
    for (index, column) in columns.iter().enumerate() {
        for (block, four) in blocks.as_chunks_mut::<16>().0.iter_mut().zip(column.as_chunks::<4>().0) {
            block[4 * index..4 * index + 4].copy_from_slice(four);
        }
    }
}

#[cfg(test)]
mod tests;
