//! An open context: programs, textures, buffers and draws, whose failures are returned as errors. One thread owns the context.
//! Each family of kernels adds its own draws.
#![allow(unsafe_code, reason = "functions of OpenGL")]

mod remains;

use std::collections::HashMap;
use std::fmt::Debug;

use glow::HasContext;

use crate::egl::{self, Interface, Library, Place};

/// Texels in a row of each texture of data. All devices support textures of 1024 by 1024 texels.
pub(crate) const WIDTH: usize = 512;

/// The vertex shader of a triangle that covers all of the target.
pub(crate) const COVERING_VERTICES: &str = "\
void main() {
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
";

const LOST: &str = "its context is lost: restart the program";
/// GL_CONTEXT_LOST (OpenGL 4.5, table 2.3), which drivers with robustness report.
const CONTEXT_LOST: u32 = 0x0507;

/// Maximum number of targets of a draw.
const MOST_TARGETS: usize = 4;

/// The first line of a shader.
pub(crate) const fn version(interface: Interface) -> &'static str {
    match interface {
        Interface::Desktop => "#version 330 core\n",
        Interface::Embedded => "#version 300 es\n",
    }
}

/// Number of rows that a number of texels needs.
pub(crate) const fn rows(texels: usize) -> usize {
    texels.div_ceil(WIDTH)
}

/// The textures of data of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    FirstInput,
    SecondInput,
    Tiles,
    Keys,
    FirstOutput,
    SecondOutput,
    /// A column of blocks, as bytes.
    Column(u8),
    ColumnResult(u8),
    /// Round keys as bytes.
    ByteKeys,
}

/// The texels of a texture.
#[derive(Debug, Clone, Copy)]
struct Texels {
    internal: u32,
    format: u32,
    ty: u32,
    /// Bytes of a texel.
    bytes: usize,
}

/// Four words of 32 bits.
const WORDS: Texels =
    Texels { internal: glow::RGBA32UI, format: glow::RGBA_INTEGER, ty: glow::UNSIGNED_INT, bytes: 16 };
/// Four bytes, which shaders read as floats from 0 to 1.
const BYTES: Texels = Texels { internal: glow::RGBA8, format: glow::RGBA, ty: glow::UNSIGNED_BYTE, bytes: 4 };

impl Slot {
    fn texels(self) -> Texels {
        match self {
            Slot::Column(_) | Slot::ColumnResult(_) | Slot::ByteKeys => BYTES,
            _ => WORDS,
        }
    }
}

/// The buffers of data of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BufferSlot {
    /// Attributes of vertices.
    Vertices,
    /// Results of transform feedback.
    Feedback,
}

/// A texture of data, [`WIDTH`] texels wide.
struct Texture {
    texture: glow::Texture,
    texels: Texels,
    rows: usize,
    /// Number of rows that may hold keys or data.
    used: usize,
}

struct Buffer {
    buffer: glow::Buffer,
    bytes: usize,
    /// Number of bytes that may be data.
    used: usize,
}

/// The shaders of a program, without the line with the version of GLSL.
pub(crate) struct Sources {
    pub(crate) vertex: String,
    pub(crate) fragment: String,
    /// The output of the vertex shader that transform feedback records.
    pub(crate) feedback: Option<&'static str>,
    /// The names of all uniforms of the program.
    pub(crate) uniforms: &'static [&'static str],
    /// The uniform array of vectors of four words that holds round keys, and its length.
    pub(crate) round_keys: Option<(&'static str, usize)>,
}

/// A program and the locations of its uniforms.
pub(crate) struct Compiled {
    pub(crate) program: glow::Program,
    uniforms: HashMap<&'static str, Option<glow::UniformLocation>>,
    round_keys: Option<(&'static str, usize)>,
}

impl Compiled {
    /// The location of a uniform; `None` if the compiler removed it.
    pub(crate) fn uniform(&self, name: &str) -> Option<&glow::UniformLocation> {
        self.uniforms[name].as_ref()
    }
}

/// An open context, with its programs, textures and buffers.
pub(crate) struct Gl {
    pub(crate) gl: glow::Context,
    /// Maximum width and height of a texture.
    largest: usize,
    textures: HashMap<Slot, Texture>,
    buffers: HashMap<BufferSlot, Buffer>,
    /// The compiled programs. The key is a text that describes the program.
    programs: HashMap<String, Compiled>,
    /// Tables that do not depend on keys or data, by name, with the buffers that hold them.
    pub(crate) tables: HashMap<&'static str, (glow::Texture, Option<glow::Buffer>)>,
    framebuffer: glow::Framebuffer,
    /// OpenGL needs a vertex array for any draw, even if the shaders read no vertices. This one has no attributes.
    no_vertices: glow::VertexArray,
    /// The vertex array of draws whose vertices have an attribute.
    pub(crate) vertices: glow::VertexArray,
    /// The reason why keys or data may remain in the context. If it is set, the context is not used any more.
    not_wiped: Option<String>,
    /// For tests: the number of draws until the context behaves as if the driver had lost it.
    draws_left: Option<u32>,
    /// The last field, so that the context is closed after its objects have been freed.
    context: egl::Context,
}

impl Gl {
    /// Opens a context on this thread.
    ///
    /// # Errors
    /// A text with the problem and the remedy.
    pub(crate) fn open(library: &Library, place: &Place) -> Result<Gl, String> {
        let context = library.context(place)?;
        // SAFETY: the context is current on this thread, and it is the only one that the thread uses.
        unsafe {
            let gl = glow::Context::from_loader_function(|name| context.function(name));
            let largest = usize::try_from(gl.get_parameter_i32(glow::MAX_TEXTURE_SIZE)).unwrap_or(0);
            if largest < WIDTH || gl.get_parameter_i32(glow::MAX_COLOR_ATTACHMENTS) < MOST_TARGETS as i32 {
                return Err("its textures or targets are too few or too small: update the driver".into());
            }
            let largest = place.largest.unwrap_or(largest);
            let framebuffer = gl.create_framebuffer()?;
            let (no_vertices, vertices) = (gl.create_vertex_array()?, gl.create_vertex_array()?);
            gl.bind_vertex_array(Some(no_vertices));
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            gl.disable(glow::DITHER);
            gl.disable(glow::BLEND);
            gl.pixel_store_i32(glow::UNPACK_ALIGNMENT, 1);
            gl.pixel_store_i32(glow::PACK_ALIGNMENT, 1);
            Ok(Gl {
                gl,
                largest,
                textures: HashMap::new(),
                buffers: HashMap::new(),
                programs: HashMap::new(),
                tables: HashMap::new(),
                framebuffer,
                no_vertices,
                vertices,
                not_wiped: None,
                draws_left: None,
                context,
            })
        }
    }

    /// The name of the device, and the version of the driver.
    pub(crate) fn names(&self) -> (String, String) {
        // SAFETY: the context is current.
        unsafe { (self.gl.get_parameter_string(glow::RENDERER), self.gl.get_parameter_string(glow::VERSION)) }
    }

    /// The programming interface of the context.
    pub(crate) fn interface(&self) -> Interface {
        self.context.interface
    }

    /// Makes the context behave, after this number of draws, as if the driver had lost it. For tests.
    pub(crate) fn lose_after(&mut self, draws: u32) {
        self.draws_left = Some(draws);
    }

    /// Ends a draw. Returns an error if the driver has reported one.
    pub(crate) fn end_draw(&mut self) -> Result<(), String> {
        self.check("a draw")?;
        self.draws_left = self.draws_left.map(|draws| draws - 1);
        Ok(())
    }

    /// Compiles a program at its first use. Returns its key for [`Gl::compiled`].
    pub(crate) fn compile<P: Debug>(
        &mut self,
        program: P,
        sources: impl FnOnce(&P, Interface) -> Sources,
    ) -> Result<String, String> {
        let key = format!("{} {program:?}", std::any::type_name::<P>());
        if self.programs.contains_key(&key) {
            return Ok(key);
        }
        let version = version(self.context.interface);
        let sources = sources(&program, self.context.interface);
        let gl = &self.gl;
        // SAFETY: the context is current.
        let compiled = unsafe {
            let linked = gl.create_program()?;
            let stages = [(glow::VERTEX_SHADER, &sources.vertex), (glow::FRAGMENT_SHADER, &sources.fragment)];
            for (stage, source) in stages {
                let shader = gl.create_shader(stage).inspect_err(|_| gl.delete_program(linked))?;
                gl.shader_source(shader, &format!("{version}{source}"));
                gl.compile_shader(shader);
                if !gl.get_shader_compile_status(shader) {
                    let log = gl.get_shader_info_log(shader);
                    gl.delete_shader(shader);
                    gl.delete_program(linked);
                    return Err(rejected(&log));
                }
                gl.attach_shader(linked, shader);
                // The shader is freed together with the program.
                gl.delete_shader(shader);
            }
            if let Some(output) = sources.feedback {
                gl.transform_feedback_varyings(linked, &[output], glow::INTERLEAVED_ATTRIBS);
            }
            gl.link_program(linked);
            if !gl.get_program_link_status(linked) {
                let log = gl.get_program_info_log(linked);
                gl.delete_program(linked);
                return Err(rejected(&log));
            }
            let uniforms = sources.uniforms.iter().map(|&name| (name, gl.get_uniform_location(linked, name)));
            Compiled { program: linked, uniforms: uniforms.collect(), round_keys: sources.round_keys }
        };
        // SAFETY: the program belongs to this context and is not in use.
        self.check("a shader").inspect_err(|_| unsafe { self.gl.delete_program(compiled.program) })?;
        self.programs.insert(key.clone(), compiled);
        Ok(key)
    }

    /// The program with this key, which [`Gl::compile`] has compiled.
    pub(crate) fn compiled(&self, key: &str) -> &Compiled {
        &self.programs[key]
    }

    /// Fills the first rows of a texture of data.
    pub(crate) fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), String> {
        self.make_room(slot, bytes.len() / (slot.texels().bytes * WIDTH))?;
        if let Some(texture) = self.textures.get_mut(&slot) {
            fill(&self.gl, texture, bytes);
        }
        Ok(())
    }

    /// Makes room for at least this number of rows in a texture, and counts the rows as used.
    pub(crate) fn make_room(&mut self, slot: Slot, rows: usize) -> Result<(), String> {
        if rows > self.largest {
            let largest = self.largest;
            return Err(format!(
                "a texture of {rows} rows exceeds the device's limit of {largest}: use another device"
            ));
        }
        if let Some(texture) = self.textures.get_mut(&slot).filter(|texture| texture.rows >= rows) {
            texture.used = texture.used.max(rows);
            return Ok(());
        }
        if let Some(mut old) = self.textures.remove(&slot) {
            let zeros = vec![0; old.texels.bytes * WIDTH * old.used];
            fill(&self.gl, &mut old, &zeros);
            // SAFETY: the texture belongs to this context and is no longer in use.
            unsafe { self.gl.delete_texture(old.texture) };
        }
        let room = rows.next_power_of_two().min(self.largest);
        let texels = slot.texels();
        let texture = self.texture_2d(texels.internal, (WIDTH, room), texels.format, texels.ty, None)?;
        self.textures.insert(slot, Texture { texture, texels, rows: room, used: rows });
        Ok(())
    }

    /// Makes a texture without filtering. The arguments are its internal format, its width and height, and the format and type of its
    /// content.
    pub(crate) fn texture_2d(
        &self,
        internal: u32,
        (width, height): (usize, usize),
        format: u32,
        ty: u32,
        content: Option<&[u8]>,
    ) -> Result<glow::Texture, String> {
        let gl = &self.gl;
        // SAFETY: the context is current; the caller's content is as long as the texture.
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
            let (width, height) = (width as i32, height as i32);
            let content = glow::PixelUnpackData::Slice(content);
            gl.tex_image_2d(glow::TEXTURE_2D, 0, internal as i32, width, height, 0, format, ty, content);
            texture
        };
        // SAFETY: the texture belongs to this context and is not in use.
        self.check("a texture").inspect_err(|_| unsafe { gl.delete_texture(texture) })?;
        Ok(texture)
    }

    /// Binds textures of data to texture units, and sets their uniforms.
    pub(crate) fn bind_inputs(&self, compiled: &Compiled, inputs: &[(&str, Slot)]) {
        for (unit, (name, slot)) in inputs.iter().enumerate() {
            let texture = self.textures.get(slot).map(|texture| texture.texture);
            // SAFETY: the context is current, and the texture belongs to it.
            unsafe {
                self.gl.active_texture(glow::TEXTURE0 + unit as u32);
                self.gl.bind_texture(glow::TEXTURE_2D, texture);
                self.gl.uniform_1_i32(compiled.uniform(name), unit as i32);
            }
        }
    }

    /// Makes textures the targets of the next draws. Other targets are detached, because a draw is limited to the area that
    /// all targets have in common.
    pub(crate) fn attach(&self, outputs: &[Slot]) {
        let attachment = |index: usize| glow::COLOR_ATTACHMENT0 + index as u32;
        for index in 0..MOST_TARGETS {
            let texture = outputs.get(index).and_then(|slot| self.textures.get(slot));
            let texture = texture.map(|texture| texture.texture);
            // SAFETY: the context is current, and the texture belongs to it.
            unsafe {
                self.gl.framebuffer_texture_2d(
                    glow::FRAMEBUFFER,
                    attachment(index),
                    glow::TEXTURE_2D,
                    texture,
                    0,
                );
            }
        }
        let attachments: Vec<u32> = (0..outputs.len()).map(attachment).collect();
        // SAFETY: the context is current.
        unsafe { self.gl.draw_buffers(&attachments) };
    }

    /// Draws a triangle that covers the first texels of the targets: a part of a row, or whole rows.
    pub(crate) fn cover(&self, texels: usize) {
        let (width, height) = (texels.min(WIDTH), rows(texels));
        // SAFETY: the context is current.
        unsafe {
            self.gl.bind_vertex_array(Some(self.no_vertices));
            self.gl.viewport(0, 0, width as i32, height as i32);
            self.gl.draw_arrays(glow::TRIANGLES, 0, 3);
        }
    }

    /// Reads the first rows of a target, which is the texture of this slot.
    pub(crate) fn read(&self, target: usize, slot: Slot, bytes: &mut [u8]) {
        let Texels { format, ty, bytes: texel, .. } = slot.texels();
        let rows = rows(bytes.len() / texel);
        assert_eq!(bytes.len(), texel * WIDTH * rows, "whole rows");
        let (width, height) = (WIDTH as i32, rows as i32);
        let bytes = glow::PixelPackData::Slice(Some(bytes));
        // SAFETY: the context is current; the bytes are whole rows.
        unsafe {
            self.gl.read_buffer(glow::COLOR_ATTACHMENT0 + target as u32);
            self.gl.read_pixels(0, 0, width, height, format, ty, bytes);
        }
    }

    /// The number of rows of a texture of data.
    pub(crate) fn rows_of(&self, slot: Slot) -> usize {
        self.textures.get(&slot).map_or(0, |texture| texture.rows)
    }

    /// A buffer with at least this number of bytes, which are counted as used.
    pub(crate) fn buffer(&mut self, slot: BufferSlot, bytes: usize) -> Result<glow::Buffer, String> {
        if let Some(buffer) = self.buffers.get_mut(&slot).filter(|buffer| buffer.bytes >= bytes) {
            buffer.used = buffer.used.max(bytes);
            return Ok(buffer.buffer);
        }
        if let Some(old) = self.buffers.remove(&slot) {
            clear(&self.gl, &old);
            // SAFETY: the buffer belongs to this context and is no longer in use.
            unsafe { self.gl.delete_buffer(old.buffer) };
        }
        let room = bytes.next_power_of_two();
        let size = i32::try_from(room).map_err(|_| "a buffer is larger than 1 GiB: use smaller calls")?;
        // SAFETY: the context is current.
        let buffer = unsafe {
            let buffer = self.gl.create_buffer()?;
            self.gl.bind_buffer(glow::ARRAY_BUFFER, Some(buffer));
            self.gl.buffer_data_size(glow::ARRAY_BUFFER, size, glow::STREAM_COPY);
            buffer
        };
        // SAFETY: the buffer belongs to this context and is not in use.
        self.check("a buffer").inspect_err(|_| unsafe { self.gl.delete_buffer(buffer) })?;
        self.buffers.insert(slot, Buffer { buffer, bytes: room, used: bytes });
        Ok(buffer)
    }

    /// Overwrites all keys and data that remain in textures, buffers and uniforms.
    ///
    /// # Errors
    /// A text with the problem.
    pub(crate) fn wipe(&mut self) -> Result<(), String> {
        let used = |texture: &Texture| texture.texels.bytes * WIDTH * texture.used;
        let zeros = vec![0; self.textures.values().map(used).max().unwrap_or(0)];
        for texture in self.textures.values_mut() {
            let used = used(texture);
            fill(&self.gl, texture, &zeros[..used]);
        }
        self.buffers.values().for_each(|buffer| clear(&self.gl, buffer));
        for compiled in self.programs.values() {
            let Some((name, vectors)) = compiled.round_keys else { continue };
            // SAFETY: the context is current; the uniform is an array of this length.
            unsafe {
                self.gl.use_program(Some(compiled.program));
                self.gl.uniform_4_u32_slice(compiled.uniform(name), &vec![0; 4 * vectors]);
            }
        }
        if let Err(reason) = self.check("wiping") {
            self.not_wiped = Some(reason.clone());
            return Err(reason);
        }
        self.textures.values_mut().for_each(|texture| texture.used = 0);
        self.buffers.values_mut().for_each(|buffer| buffer.used = 0);
        Ok(())
    }

    /// Returns an error if the driver has reported one since the last check, or if the context is lost.
    pub(crate) fn check(&self, what: &str) -> Result<(), String> {
        if self.draws_left == Some(0) {
            return Err(LOST.into());
        }
        if let Some(reason) = &self.not_wiped {
            return Err(reason.clone());
        }
        // SAFETY: the context is current.
        let error = unsafe { self.gl.get_error() };
        Err(match error {
            glow::NO_ERROR => return Ok(()),
            glow::OUT_OF_MEMORY => format!("{what} failed: out of memory; close programs that use the GPU"),
            CONTEXT_LOST => LOST.into(),
            code => format!("{what} failed: OpenGL error {code:#x}; update the driver"),
        })
    }
}

/// Fills the first rows of a texture.
fn fill(gl: &glow::Context, texture: &mut Texture, bytes: &[u8]) {
    let Texels { format, ty, bytes: texel, .. } = texture.texels;
    let rows = rows(bytes.len() / texel);
    if rows == 0 {
        return;
    }
    assert_eq!(bytes.len(), texel * WIDTH * rows, "whole rows");
    texture.used = texture.used.max(rows);
    let (width, height) = (WIDTH as i32, rows as i32);
    let bytes = glow::PixelUnpackData::Slice(Some(bytes));
    // SAFETY: the context is current; the bytes are whole rows.
    unsafe {
        gl.bind_texture(glow::TEXTURE_2D, Some(texture.texture));
        gl.tex_sub_image_2d(glow::TEXTURE_2D, 0, 0, 0, width, height, format, ty, bytes);
    }
}

/// Overwrites the used bytes of a buffer.
fn clear(gl: &glow::Context, buffer: &Buffer) {
    // SAFETY: the context is current; the buffer has at least this number of bytes.
    unsafe {
        gl.bind_buffer(glow::ARRAY_BUFFER, Some(buffer.buffer));
        gl.buffer_sub_data_u8_slice(glow::ARRAY_BUFFER, 0, &vec![0; buffer.used]);
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
        // SAFETY: the context is current, and the objects belong to it.
        unsafe {
            self.textures.values().for_each(|texture| gl.delete_texture(texture.texture));
            self.buffers.values().for_each(|buffer| gl.delete_buffer(buffer.buffer));
            self.programs.values().for_each(|compiled| gl.delete_program(compiled.program));
            for (texture, buffer) in self.tables.values() {
                gl.delete_texture(*texture);
                buffer.iter().for_each(|buffer| gl.delete_buffer(*buffer));
            }
            gl.delete_framebuffer(self.framebuffer);
            gl.delete_vertex_array(self.no_vertices);
            gl.delete_vertex_array(self.vertices);
        }
    }
}
