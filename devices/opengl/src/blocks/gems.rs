//! The kernels of *AES Encryption and Decryption on the GPU* (Yamanouchi, GPU Gems 3, chapter 36, 2007): the same functions in
//! a vertex shader with transform feedback and in a fragment shader, with tables in textures or in uniform arrays. There is one
//! program for each direction, or one program for both, which selects the direction by a uniform.
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
    /// In buffer textures. OpenGL ES 3.0 has no buffer textures, so with OpenGL ES the tables are in textures of one row.
    Textures,
    Uniforms,
}

/// A kernel of the chapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Design {
    pub(crate) stage: Stage,
    pub(crate) tables: Tables,
    /// True if one program has both directions.
    pub(crate) has_mode: bool,
}

/// The directions that a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Direction {
    Encrypts,
    Decrypts,
    /// Both. The uniform `mode` selects one of them.
    ByMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Program {
    stage: Stage,
    tables: Tables,
    direction: Direction,
}

/// Number of round keys of the longest key: one for each of the 14 rounds, and one before them.
const MOST_ROUND_KEYS: usize = 15;

const UNIFORMS: [&str; 8] = [
    "blocks",
    "rounds",
    "round_keys",
    "mode",
    "sbox_table",
    "mix_table",
    "inverse_sbox_table",
    "inverse_mix_table",
];

/// A table: its name in [`Gl::tables`], and its contents.
type Content = (&'static str, fn() -> Vec<u32>);
const FORWARD: [Content; 2] =
    [("S-box", || SBOX.iter().map(|&byte| byte.into()).collect()), ("MixColumns", || MIX_COLUMNS.to_vec())];
const INVERSE: [Content; 2] = [
    ("inverse S-box", || INVERSE_SBOX.iter().map(|&byte| byte.into()).collect()),
    ("InvMixColumns", || INVERSE_MIX_COLUMNS.to_vec()),
];

impl Program {
    fn of(design: Design, decrypts: bool) -> Program {
        let direction = match (design.has_mode, decrypts) {
            (true, _) => Direction::ByMode,
            (false, true) => Direction::Decrypts,
            (false, false) => Direction::Encrypts,
        };
        Program { stage: design.stage, tables: design.tables, direction }
    }

    /// The tables, with the names of their uniforms.
    fn contents(self) -> Vec<(&'static str, Content)> {
        let names = ["sbox_table", "mix_table"].into_iter();
        match self.direction {
            Direction::Encrypts => names.zip(FORWARD).collect(),
            Direction::Decrypts => names.zip(INVERSE).collect(),
            Direction::ByMode => names
                .chain(["inverse_sbox_table", "inverse_mix_table"])
                .zip(FORWARD.into_iter().chain(INVERSE))
                .collect(),
        }
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
            "precision highp float;\nprecision highp int;\n#define {tables} 1\n#define DIRECTION {}\n{}",
            match self.direction {
                Direction::Encrypts => "ENCRYPTS",
                Direction::Decrypts => "DECRYPTS",
                Direction::ByMode => "BY_MODE",
            },
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

/// A program for a host that compiles it itself: its shaders, and the name of the table for each uniform of a table.
pub(crate) fn exported(
    design: Design,
    decrypts: bool,
    interface: Interface,
) -> (Sources, Vec<(&'static str, &'static str)>) {
    let program = Program::of(design, decrypts);
    let tables = program.contents().into_iter().map(|(uniform, (name, _))| (uniform, name));
    (program.sources(interface), tables.collect())
}

/// All tables, by name.
pub(crate) fn all_tables() -> Vec<(&'static str, Vec<u32>)> {
    FORWARD.into_iter().chain(INVERSE).map(|(name, content)| (name, content())).collect()
}

/// Encrypts or decrypts the blocks of a run.
pub(super) fn draw(run: &mut Run, design: Design, gl: &mut Gl) -> Result<(), String> {
    let program = Program::of(design, run.decrypts);
    let key = gl.compile(program, |program, interface| program.sources(interface))?;
    if design.tables == Tables::Textures {
        for (_, (name, content)) in program.contents() {
            if !gl.tables.contains_key(name) {
                make_table(gl, name, &content())?;
            }
        }
    }
    let target_rows = rows(run.drawn);
    match design.stage {
        Stage::Fragment => {
            gl.upload(Slot::FirstInput, &run.blocks)?;
            gl.make_room(Slot::FirstOutput, target_rows)?;
        }
        // The framebuffer must be complete, although nothing is drawn to it.
        Stage::Vertex => gl.make_room(Slot::FirstOutput, 1)?,
    }
    let bytes = 16 * run.drawn;
    let buffers = match design.stage {
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
        gl.gl.uniform_1_i32(compiled.uniform("mode"), run.decrypts.into());
        for (unit, (uniform, (name, content))) in (1..).zip(program.contents()) {
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

/// Runs the vertex shader on the blocks, and replaces the blocks by the results.
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
