//! Finds keys and data that remain in a context, for tests of [`Gl::wipe`].

use glow::HasContext;

use super::{Gl, Slot, WIDTH};

impl Gl {
    /// The number of nonzero bytes in textures, buffers and uniforms of keys and data. Buffers can be read back only with
    /// OpenGL, not with OpenGL ES.
    ///
    /// # Errors
    /// A text with the problem.
    pub(crate) fn remains(&self) -> Result<usize, String> {
        let mut remains = 0;
        let mut count = |bytes: &[u8]| remains += bytes.iter().filter(|byte| **byte != 0).count();
        let slots: Vec<Slot> = self.textures.keys().copied().collect();
        for slot in slots {
            let texture = &self.textures[&slot];
            let mut bytes = vec![0; texture.texels.bytes * WIDTH * texture.rows];
            self.attach(&[slot]);
            self.read(0, slot, &mut bytes);
            count(&bytes);
        }
        for buffer in self.buffers.values() {
            let mut bytes = vec![0; buffer.bytes];
            // SAFETY: the context is current; the buffer has this number of bytes.
            unsafe {
                self.gl.bind_buffer(glow::ARRAY_BUFFER, Some(buffer.buffer));
                self.gl.get_buffer_sub_data(glow::ARRAY_BUFFER, 0, &mut bytes);
            }
            count(&bytes);
        }
        for compiled in self.programs.values() {
            let Some((name, vectors)) = compiled.round_keys else { continue };
            for index in 0..vectors {
                // SAFETY: the context is current; each element of the array is a vector of four words.
                let words = unsafe {
                    let mut words = [0; 4];
                    let element = format!("{name}[{index}]");
                    if let Some(location) = self.gl.get_uniform_location(compiled.program, &element) {
                        self.gl.get_uniform_u32(compiled.program, &location, &mut words);
                    }
                    words
                };
                count(&words.map(u32::to_ne_bytes).concat());
            }
        }
        self.check("reading back")?;
        Ok(remains)
    }
}
