//! A draw of `opengl/fixslice`.
#![allow(unsafe_code, reason = "functions of OpenGL")]

use glow::HasContext;
use zeroize::Zeroizing;

use super::layout::Tiling;
use super::program::Program;
use crate::gl::{Gl, Slot, WIDTH};

/// A draw. [`Draw::run`] replaces the halves by the results.
pub(crate) struct Draw {
    pub(crate) program: Program,
    pub(crate) tiling: Tiling,
    /// The first halves of all tiles, and the second halves. Each fills whole rows of a texture.
    pub(crate) halves: [Zeroizing<Vec<u8>>; 2],
    pub(crate) tile_count: usize,
    /// Two texels for each tile. They fill whole rows.
    pub(crate) tiles: Zeroizing<Vec<u8>>,
    /// The bit planes of all round keys. They fill whole rows, unless all tiles have one key (`one_key`).
    pub(crate) keys: Zeroizing<Vec<u32>>,
}

impl Draw {
    /// Draws, and replaces the halves by the results.
    ///
    /// # Errors
    /// A text with the problem and the remedy. The halves are then undefined.
    pub(crate) fn run(&mut self, gl: &mut Gl) -> Result<(), String> {
        let program = gl.compile(self.program, |program, _| program.sources())?;
        let rows = self.halves[0].len() / (16 * WIDTH);
        gl.upload(Slot::FirstInput, &self.halves[0])?;
        gl.upload(Slot::SecondInput, &self.halves[1])?;
        gl.upload(Slot::Tiles, &self.tiles)?;
        if !self.program.one_key {
            let bytes: Zeroizing<Vec<u8>> =
                Zeroizing::new(self.keys.iter().flat_map(|word| word.to_ne_bytes()).collect());
            gl.upload(Slot::Keys, &bytes)?;
        }
        gl.make_room(Slot::FirstOutput, rows)?;
        gl.make_room(Slot::SecondOutput, rows)?;
        let compiled = gl.compiled(&program);
        // SAFETY: the context is current, and the uniforms are those of the program.
        unsafe {
            gl.gl.use_program(Some(compiled.program));
            if self.program.one_key {
                gl.gl.uniform_4_u32_slice(compiled.uniform("round_keys"), &self.keys[..]);
            }
            gl.gl.uniform_1_i32(compiled.uniform("width"), WIDTH as i32);
            gl.gl.uniform_1_i32(compiled.uniform("tile_count"), self.tile_count as i32);
            gl.gl.uniform_1_i32(compiled.uniform("half_shift"), self.tiling.half_shift as i32);
        }
        let inputs = [
            ("first_blocks", Slot::FirstInput),
            ("second_blocks", Slot::SecondInput),
            ("tiles", Slot::Tiles),
            ("round_keys", Slot::Keys),
        ];
        gl.bind_inputs(compiled, &inputs[..if self.program.one_key { 3 } else { 4 }]);
        let outputs = [Slot::FirstOutput, Slot::SecondOutput];
        gl.attach(&outputs);
        gl.cover(self.tile_count << self.tiling.half_shift);
        for (target, (half, slot)) in self.halves.iter_mut().zip(outputs).enumerate() {
            gl.read(target, slot, half);
        }
        gl.end_draw()
    }
}
