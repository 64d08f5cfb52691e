//! The kernels of *AES Encryption and Decryption on the GPU* (Yamanouchi, GPU Gems 3, chapter 36, 2007): the same functions in
//! a vertex shader with transform feedback and in a fragment shader, with tables in textures or in uniform arrays.
#![allow(unsafe_code, reason = "functions of OpenGL")]

use glow::HasContext;
use zeroize::Zeroizing;

use super::Run;
use super::tables::{INVERSE_MIX_COLUMNS, INVERSE_SBOX, MIX_COLUMNS, SBOX};
use crate::egl::Interface;
use crate::gl::{BufferSlot, COVERING_VERTICES, Compiled, Gl, Slot, Sources, WIDTH, rows};

/// The shader that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Vertex,
    Fragment,
}

/// The places in which the shader finds its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tables {
    /// In buffer textures. OpenGL ES 3.0 has no buffer textures, so the tables are then in textures of one row.
    Textures,
    Uniforms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Program {
    stage: Stage,
    tables: Tables,
    /// True for the inverse cipher.
    decrypts: bool,
}

/// Number of round keys of the longest key: one for each of the 14 rounds, and one before them.
const MOST_ROUND_KEYS: usize = 15;

const UNIFORMS: [&str; 5] = ["blocks", "rounds", "round_keys", "sbox_table", "mix_table"];

/// The uniforms of the S-box and of the table of MixColumns.
const TABLE_UNIFORMS: [&str; 2] = ["sbox_table", "mix_table"];

/// Names of the S-box and of the table of MixColumns in [`Gl::tables`], and their contents.
type Content = (&'static str, fn() -> Vec<u32>);
const ENCRYPTS: [Content; 2] =
    [("S-box", || SBOX.iter().map(|&byte| byte.into()).collect()), ("MixColumns", || MIX_COLUMNS.to_vec())];
const DECRYPTS: [Content; 2] = [
    ("inverse S-box", || INVERSE_SBOX.iter().map(|&byte| byte.into()).collect()),
    ("InvMixColumns", || INVERSE_MIX_COLUMNS.to_vec()),
];

impl Program {
    fn contents(self) -> [Content; 2] {
        if self.decrypts { DECRYPTS } else { ENCRYPTS }
    }

    /// The shaders of the program.
    fn sources(self, interface: Interface) -> Sources {
        let buffers = interface == Interface::Desktop;
        let tables = match self.tables {
            Tables::Uniforms => "UNIFORMS",
            Tables::Textures if buffers => "BUFFERS",
            Tables::Textures => "TEXTURES",
        };
        let cipher = format!(
            "precision highp float;\nprecision highp int;\n#define {tables} 1\n#define DECRYPTS {}\n{}",
            u32::from(self.decrypts),
            include_str!("../../shaders/gems.glsl")
        );
        let (vertex, fragment, feedback) = match self.stage {
            Stage::Vertex => (
                cipher + include_str!("../../shaders/gems_vertex.glsl"),
                "precision highp float;\nvoid main() {}\n".to_owned(),
                Some("result"),
            ),
            Stage::Fragment => {
                (COVERING_VERTICES.into(), cipher + include_str!("../../shaders/gems_fragment.glsl"), None)
            }
        };
        let round_keys = Some(("round_keys", MOST_ROUND_KEYS));
        Sources { vertex, fragment, feedback, uniforms: &UNIFORMS, round_keys }
    }
}

/// The shaders of a program, for a host that compiles them itself.
pub(crate) fn sources(stage: Stage, tables: Tables, decrypts: bool, interface: Interface) -> Sources {
    Program { stage, tables, decrypts }.sources(interface)
}

/// The tables by the names of their uniforms.
pub(crate) fn tables(decrypts: bool) -> [(&'static str, Vec<u32>); 2] {
    let [(_, sbox), (_, mix)] = if decrypts { DECRYPTS } else { ENCRYPTS };
    [(TABLE_UNIFORMS[0], sbox()), (TABLE_UNIFORMS[1], mix())]
}

/// Encrypts or decrypts the blocks of a run.
pub(super) fn draw(run: &mut Run, stage: Stage, tables: Tables, gl: &mut Gl) -> Result<(), String> {
    let program = Program { stage, tables, decrypts: run.decrypts };
    let key = gl.compile(program, |program, interface| program.sources(interface))?;
    if tables == Tables::Textures {
        for (name, content) in program.contents() {
            if !gl.tables.contains_key(name) {
                make_table(gl, name, &content())?;
            }
        }
    }
    let target_rows = rows(run.drawn);
    match stage {
        Stage::Fragment => {
            gl.upload(Slot::FirstInput, &run.blocks)?;
            gl.make_room(Slot::FirstOutput, target_rows)?;
        }
        // The framebuffer must be complete, although nothing is drawn to it.
        Stage::Vertex => gl.make_room(Slot::FirstOutput, 1)?,
    }
    let bytes = 16 * run.drawn;
    let buffers = match stage {
        Stage::Vertex => {
            Some((gl.buffer(BufferSlot::Vertices, bytes)?, gl.buffer(BufferSlot::Feedback, bytes)?))
        }
        Stage::Fragment => None,
    };
    let compiled = gl.compiled(&key);
    set_uniforms(gl, compiled, program, run);
    gl.attach(&[Slot::FirstOutput]);
    match buffers {
        None => {
            gl.bind_inputs(compiled, &[("blocks", Slot::FirstInput)]);
            gl.cover(run.drawn);
            gl.read(0, Slot::FirstOutput, &mut run.blocks[..16 * WIDTH * target_rows]);
        }
        Some((input, output)) => transform(gl, input, output, &mut run.blocks[..bytes])?,
    }
    gl.end_draw()
}

/// Makes the program current, and sets its uniforms other than `blocks`.
fn set_uniforms(gl: &Gl, compiled: &Compiled, program: Program, run: &Run) {
    let words = |bytes: &[u8]| -> Zeroizing<Vec<u32>> {
        let words = bytes.as_chunks::<4>().0;
        Zeroizing::new(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    };
    // SAFETY: the context is current, and the uniforms have these types and lengths.
    unsafe {
        gl.gl.use_program(Some(compiled.program));
        gl.gl.uniform_1_i32(compiled.uniform("rounds"), run.size.rounds() as i32);
        gl.gl.uniform_4_u32_slice(compiled.uniform("round_keys"), &words(&run.round_keys));
        for (unit, (uniform, (name, content))) in
            (1..).zip(TABLE_UNIFORMS.into_iter().zip(program.contents()))
        {
            match gl.tables.get(name) {
                Some((texture, buffer)) if program.tables == Tables::Textures => {
                    gl.gl.active_texture(glow::TEXTURE0 + unit);
                    let target = if buffer.is_some() { glow::TEXTURE_BUFFER } else { glow::TEXTURE_2D };
                    gl.gl.bind_texture(target, Some(*texture));
                    gl.gl.uniform_1_i32(compiled.uniform(uniform), unit as i32);
                }
                _ => gl.gl.uniform_4_u32_slice(compiled.uniform(uniform), &content()),
            }
        }
    }
}

fn make_table(gl: &mut Gl, name: &'static str, words: &[u32]) -> Result<(), String> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let table = match gl.interface() {
        // SAFETY: the context is current.
        Interface::Desktop => unsafe {
            let buffer = gl.gl.create_buffer()?;
            gl.gl.bind_buffer(glow::TEXTURE_BUFFER, Some(buffer));
            gl.gl.buffer_data_u8_slice(glow::TEXTURE_BUFFER, &bytes, glow::STATIC_DRAW);
            let texture = gl.gl.create_texture().inspect_err(|_| gl.gl.delete_buffer(buffer))?;
            gl.gl.bind_texture(glow::TEXTURE_BUFFER, Some(texture));
            gl.gl.tex_buffer(glow::TEXTURE_BUFFER, glow::R32UI, Some(buffer));
            (texture, Some(buffer))
        },
        Interface::Embedded => {
            let size = (words.len(), 1);
            (gl.texture_2d(glow::R32UI, size, glow::RED_INTEGER, glow::UNSIGNED_INT, Some(&bytes))?, None)
        }
    };
    gl.check("a table").inspect_err(|_| {
        // SAFETY: the context is current.
        unsafe {
            gl.gl.delete_texture(table.0);
            table.1.into_iter().for_each(|buffer| gl.gl.delete_buffer(buffer));
        }
    })?;
    gl.tables.insert(name, table);
    Ok(())
}

/// Runs the vertex shader on the blocks, and replaces them by its results.
fn transform(gl: &Gl, input: glow::Buffer, output: glow::Buffer, blocks: &mut [u8]) -> Result<(), String> {
    let bytes = blocks.len() as i32;
    let vertices = gl.vertices;
    let gl = &gl.gl;
    // SAFETY: the context is current; both buffers and the mapped range have at least this number of bytes.
    unsafe {
        gl.bind_vertex_array(Some(vertices));
        gl.bind_buffer(glow::ARRAY_BUFFER, Some(input));
        gl.buffer_sub_data_u8_slice(glow::ARRAY_BUFFER, 0, blocks);
        gl.enable_vertex_attrib_array(0);
        gl.vertex_attrib_pointer_i32(0, 4, glow::UNSIGNED_INT, 16, 0);
        gl.enable(glow::RASTERIZER_DISCARD);
        gl.bind_buffer_base(glow::TRANSFORM_FEEDBACK_BUFFER, 0, Some(output));
        gl.begin_transform_feedback(glow::POINTS);
        gl.draw_arrays(glow::POINTS, 0, bytes / 16);
        gl.end_transform_feedback();
        gl.disable(glow::RASTERIZER_DISCARD);
        let results = gl.map_buffer_range(glow::TRANSFORM_FEEDBACK_BUFFER, 0, bytes, glow::MAP_READ_BIT);
        if results.is_null() {
            gl.bind_buffer_base(glow::TRANSFORM_FEEDBACK_BUFFER, 0, None);
            return Err("the results of a draw cannot be read: update the driver".into());
        }
        blocks.copy_from_slice(std::slice::from_raw_parts(results, blocks.len()));
        gl.unmap_buffer(glow::TRANSFORM_FEEDBACK_BUFFER);
        gl.bind_buffer_base(glow::TRANSFORM_FEEDBACK_BUFFER, 0, None);
    }
    Ok(())
}
