//! An open context: programs, textures and draws, with failures as errors. One thread owns it.
#![allow(unsafe_code, reason = "functions of OpenGL")]

use std::collections::HashMap;

use glow::HasContext;
use zeroize::Zeroizing;

use crate::egl::{self, Interface, Library, Place};
use crate::kernel::{Program, VERTEX_SHADER};
use crate::keys::PLANES;
use crate::layout::{Tiling, WIDTH, rows};

/// A draw. [`Gl::draw`] replaces the halves by the results.
pub(crate) struct Draw {
    pub(crate) program: Program,
    pub(crate) tiling: Tiling,
    /// The first halves of all tiles, and the second halves; each a whole number of rows of a texture.
    pub(crate) halves: [Zeroizing<Vec<u8>>; 2],
    pub(crate) tile_count: usize,
    /// Two texels for each tile, a whole number of rows.
    pub(crate) tiles: Zeroizing<Vec<u8>>,
    /// The bit planes of all round keys; a whole number of rows, unless the program has one key (`one_key`).
    pub(crate) keys: Zeroizing<Vec<u32>>,
}

/// The textures of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    FirstInput,
    SecondInput,
    Tiles,
    Keys,
    FirstOutput,
    SecondOutput,
}

struct Texture {
    texture: glow::Texture,
    rows: usize,
    /// Rows that may hold keys or data.
    used: usize,
}

/// A program and the locations of its uniforms.
struct Compiled {
    program: glow::Program,
    uniforms: HashMap<&'static str, Option<glow::UniformLocation>>,
}

const UNIFORMS: [&str; 7] =
    ["first_blocks", "second_blocks", "tiles", "width", "tile_count", "half_shift", "round_keys"];

/// An open context.
pub(crate) struct Gl {
    gl: glow::Context,
    /// Maximum width and height of a texture.
    largest: usize,
    textures: HashMap<Slot, Texture>,
    programs: HashMap<Program, Compiled>,
    framebuffer: glow::Framebuffer,
    /// OpenGL needs a vertex array for any draw, even if the shaders read no vertices.
    vertices: glow::VertexArray,
    /// For tests: draws until the context behaves as if the driver had lost it.
    draws_left: Option<u32>,
    /// Last, so that the context is closed after its objects are freed.
    context: egl::Context,
}

impl Gl {
    /// Opens a context on this thread.
    ///
    /// # Errors
    /// What failed, and what to do about it.
    pub(crate) fn open(library: &Library, place: &Place) -> Result<Gl, String> {
        let context = library.context(place)?;
        // SAFETY: the context is current on this thread, and it is the only one that the thread uses.
        unsafe {
            let gl = glow::Context::from_loader_function(|name| context.function(name));
            let largest = usize::try_from(gl.get_parameter_i32(glow::MAX_TEXTURE_SIZE)).unwrap_or(0);
            if largest < WIDTH || gl.get_parameter_i32(glow::MAX_COLOR_ATTACHMENTS) < 2 {
                return Err("its textures are too small for the kernels: update the driver".into());
            }
            let framebuffer = gl.create_framebuffer()?;
            let vertices = gl.create_vertex_array()?;
            gl.bind_vertex_array(Some(vertices));
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            gl.disable(glow::DITHER);
            gl.disable(glow::BLEND);
            gl.pixel_store_i32(glow::UNPACK_ALIGNMENT, 1);
            gl.pixel_store_i32(glow::PACK_ALIGNMENT, 1);
            Ok(Gl {
                gl,
                largest,
                textures: HashMap::new(),
                programs: HashMap::new(),
                framebuffer,
                vertices,
                draws_left: None,
                context,
            })
        }
    }

    /// The names of the device and of the driver's version.
    pub(crate) fn names(&self) -> (String, String) {
        // SAFETY: the context is current.
        unsafe { (self.gl.get_parameter_string(glow::RENDERER), self.gl.get_parameter_string(glow::VERSION)) }
    }

    /// Behaves after this number of draws as if the driver had lost the context, for tests.
    pub(crate) fn lose_after(&mut self, draws: u32) {
        self.draws_left = Some(draws);
    }

    /// Draws a chunk, and replaces its halves by the results.
    ///
    /// # Errors
    /// What failed, and what to do about it. The halves are then undefined.
    pub(crate) fn draw(&mut self, draw: &mut Draw) -> Result<(), String> {
        self.compile(draw.program)?;
        let data_rows = draw.halves[0].len() / (16 * WIDTH);
        let [first, second] = &draw.halves;
        self.upload(Slot::FirstInput, first)?;
        self.upload(Slot::SecondInput, second)?;
        self.upload(Slot::Tiles, &draw.tiles)?;
        if !draw.program.one_key {
            let bytes: Zeroizing<Vec<u8>> =
                Zeroizing::new(draw.keys.iter().flat_map(|word| word.to_ne_bytes()).collect());
            self.upload(Slot::Keys, &bytes)?;
        }
        self.make_room(Slot::FirstOutput, data_rows)?;
        self.make_room(Slot::SecondOutput, data_rows)?;
        let compiled = &self.programs[&draw.program];
        let texture = |slot| self.textures.get(&slot).map(|texture| texture.texture);
        let gl = &self.gl;
        let uniform = |name| compiled.uniforms[name].as_ref();
        // SAFETY: the context is current; textures and framebuffer are its own.
        unsafe {
            gl.use_program(Some(compiled.program));
            let inputs = [
                ("first_blocks", Slot::FirstInput),
                ("second_blocks", Slot::SecondInput),
                ("tiles", Slot::Tiles),
                ("round_keys", Slot::Keys),
            ];
            let inputs = &inputs[..if draw.program.one_key { 3 } else { 4 }];
            for (unit, &(name, slot)) in inputs.iter().enumerate() {
                gl.active_texture(glow::TEXTURE0 + unit as u32);
                gl.bind_texture(glow::TEXTURE_2D, texture(slot));
                gl.uniform_1_i32(uniform(name), unit as i32);
            }
            if draw.program.one_key {
                gl.uniform_4_u32_slice(uniform("round_keys"), &draw.keys[..]);
            }
            gl.uniform_1_i32(uniform("width"), WIDTH as i32);
            gl.uniform_1_i32(uniform("tile_count"), draw.tile_count as i32);
            gl.uniform_1_i32(uniform("half_shift"), draw.tiling.half_shift as i32);
            for (index, slot) in [Slot::FirstOutput, Slot::SecondOutput].into_iter().enumerate() {
                let attachment = glow::COLOR_ATTACHMENT0 + index as u32;
                gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, glow::TEXTURE_2D, texture(slot), 0);
            }
            gl.draw_buffers(&[glow::COLOR_ATTACHMENT0, glow::COLOR_ATTACHMENT1]);
            gl.viewport(0, 0, WIDTH as i32, data_rows as i32);
            gl.draw_arrays(glow::TRIANGLES, 0, 3);
            for (index, half) in draw.halves.iter_mut().enumerate() {
                gl.read_buffer(glow::COLOR_ATTACHMENT0 + index as u32);
                gl.read_pixels(
                    0,
                    0,
                    WIDTH as i32,
                    data_rows as i32,
                    glow::RGBA_INTEGER,
                    glow::UNSIGNED_INT,
                    glow::PixelPackData::Slice(Some(&mut half[..])),
                );
            }
        }
        self.check("a draw")?;
        self.draws_left = self.draws_left.map(|draws| draws - 1);
        Ok(())
    }

    /// Overwrites all that keys and data have left in textures and uniforms.
    ///
    /// # Errors
    /// What failed.
    pub(crate) fn wipe(&mut self) -> Result<(), String> {
        let most = self.textures.values().map(|texture| texture.used).max().unwrap_or(0);
        let zeros = vec![0; 16 * WIDTH * most];
        for texture in self.textures.values_mut() {
            fill(&self.gl, texture, &zeros[..16 * WIDTH * texture.used]);
            texture.used = 0;
        }
        for (program, compiled) in self.programs.iter().filter(|(program, _)| program.one_key) {
            let zeros = vec![0; PLANES * (program.size.rounds() + 1)];
            // SAFETY: the context is current; the uniform is an array of this length.
            unsafe {
                self.gl.use_program(Some(compiled.program));
                self.gl.uniform_4_u32_slice(compiled.uniforms["round_keys"].as_ref(), &zeros);
            }
        }
        self.check("wiping")
    }

    /// Fills the first rows of a texture.
    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), String> {
        self.make_room(slot, bytes.len() / (16 * WIDTH))?;
        if let Some(texture) = self.textures.get_mut(&slot) {
            fill(&self.gl, texture, bytes);
        }
        Ok(())
    }

    /// Makes a texture have at least this number of rows, and counts them as used.
    fn make_room(&mut self, slot: Slot, rows: usize) -> Result<(), String> {
        if rows > self.largest {
            return Err(format!("a texture of {rows} rows is larger than its limit of {}", self.largest));
        }
        if let Some(texture) = self.textures.get_mut(&slot).filter(|texture| texture.rows >= rows) {
            texture.used = texture.used.max(rows);
            return Ok(());
        }
        if let Some(mut old) = self.textures.remove(&slot) {
            let zeros = vec![0; 16 * WIDTH * old.used];
            fill(&self.gl, &mut old, &zeros);
            // SAFETY: the texture is this context's, and no longer used.
            unsafe { self.gl.delete_texture(old.texture) };
        }
        let room = rows.next_power_of_two().min(self.largest);
        let gl = &self.gl;
        // SAFETY: the context is current.
        let texture = unsafe {
            let texture = gl.create_texture()?;
            gl.bind_texture(glow::TEXTURE_2D, Some(texture));
            for (name, value) in [
                (glow::TEXTURE_MIN_FILTER, glow::NEAREST),
                (glow::TEXTURE_MAG_FILTER, glow::NEAREST),
                (glow::TEXTURE_WRAP_S, glow::CLAMP_TO_EDGE),
                (glow::TEXTURE_WRAP_T, glow::CLAMP_TO_EDGE),
            ] {
                gl.tex_parameter_i32(glow::TEXTURE_2D, name, value as i32);
            }
            gl.tex_image_2d(
                glow::TEXTURE_2D,
                0,
                glow::RGBA32UI as i32,
                WIDTH as i32,
                room as i32,
                0,
                glow::RGBA_INTEGER,
                glow::UNSIGNED_INT,
                glow::PixelUnpackData::Slice(None),
            );
            texture
        };
        self.check("a texture")?;
        self.textures.insert(slot, Texture { texture, rows: room, used: rows });
        Ok(())
    }

    fn compile(&mut self, program: Program) -> Result<(), String> {
        if self.programs.contains_key(&program) {
            return Ok(());
        }
        let version = match self.context.interface {
            Interface::Desktop => "#version 330 core\n",
            Interface::Embedded => "#version 300 es\n",
        };
        let gl = &self.gl;
        // SAFETY: the context is current.
        let compiled = unsafe {
            let linked = gl.create_program()?;
            let sources = [
                (glow::VERTEX_SHADER, VERTEX_SHADER.to_owned()),
                (glow::FRAGMENT_SHADER, program.fragment_shader()),
            ];
            let mut shaders = Vec::new();
            for (stage, source) in sources {
                let shader = gl.create_shader(stage)?;
                gl.shader_source(shader, &format!("{version}{source}"));
                gl.compile_shader(shader);
                if !gl.get_shader_compile_status(shader) {
                    let log = gl.get_shader_info_log(shader);
                    return Err(rejected(&log));
                }
                gl.attach_shader(linked, shader);
                shaders.push(shader);
            }
            gl.link_program(linked);
            for shader in shaders {
                gl.detach_shader(linked, shader);
                gl.delete_shader(shader);
            }
            if !gl.get_program_link_status(linked) {
                return Err(rejected(&gl.get_program_info_log(linked)));
            }
            let uniforms = UNIFORMS.map(|name| (name, gl.get_uniform_location(linked, name)));
            Compiled { program: linked, uniforms: uniforms.into() }
        };
        self.check("a shader")?;
        self.programs.insert(program, compiled);
        Ok(())
    }

    /// An error if the driver has reported one since the last check, or if the context is lost.
    fn check(&self, what: &str) -> Result<(), String> {
        if self.draws_left == Some(0) {
            return Err("its context is lost: restart the program".into());
        }
        // SAFETY: the context is current.
        let error = unsafe { self.gl.get_error() };
        Err(match error {
            glow::NO_ERROR => return Ok(()),
            glow::OUT_OF_MEMORY => format!("{what} failed: out of memory; use smaller calls"),
            code => format!("{what} failed: OpenGL error {code:#x}; update the driver"),
        })
    }
}

/// Fills the first rows of a texture.
fn fill(gl: &glow::Context, texture: &mut Texture, bytes: &[u8]) {
    let rows = rows(bytes.len() / 16);
    if rows == 0 {
        return;
    }
    texture.used = texture.used.max(rows);
    // SAFETY: the context is current; the bytes are `rows` whole rows.
    unsafe {
        gl.bind_texture(glow::TEXTURE_2D, Some(texture.texture));
        gl.tex_sub_image_2d(
            glow::TEXTURE_2D,
            0,
            0,
            0,
            WIDTH as i32,
            rows as i32,
            glow::RGBA_INTEGER,
            glow::UNSIGNED_INT,
            glow::PixelUnpackData::Slice(Some(bytes)),
        );
    }
}

/// The first line of a compiler's messages.
fn rejected(log: &str) -> String {
    let line = log.lines().next().unwrap_or("no message").trim();
    format!("its driver rejects a shader: {line}; update the driver")
}

impl Drop for Gl {
    fn drop(&mut self) {
        let _ = self.wipe();
        let gl = &self.gl;
        // SAFETY: the context is current, and the objects are its own.
        unsafe {
            self.textures.values().for_each(|texture| gl.delete_texture(texture.texture));
            self.programs.values().for_each(|compiled| gl.delete_program(compiled.program));
            gl.delete_framebuffer(self.framebuffer);
            gl.delete_vertex_array(self.vertices);
        }
    }
}
