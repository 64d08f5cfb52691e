// Runs the programs of devices/opengl on WebGL 2.

import { expand, littleBlockOf, littleNumberOf, planes, tweakAfter } from './aes.js';
import { NoGpu } from './wgpu.js';

// Texels in a row of each texture of data, as in devices/opengl/src/gl.rs.
const WIDTH = 512;
const rows = (texels) => Math.ceil(texels / WIDTH);
// A tile of opengl/fixslice has 32 blocks in each half, and the halves are in separate textures.
const HALF_SHIFT = 5;
const HALF = 1 << HALF_SHIFT;
const MOST_ROUND_KEYS = 15;
// The texture unit for creating and filling textures. No program reads from it.
const FILLING = 7;

export class Webgl {
    #gl;
    #exported;
    #programs = new Map();
    #textures = new Map();
    #buffers = new Map();
    #framebuffer;
    #noVertices;
    #vertices;

    /** Opens a context. `exported` is the file opengl.json. */
    static open(exported) {
        const gl = document.createElement('canvas').getContext('webgl2', { antialias: false, powerPreference: 'high-performance' });
        if (!gl) {
            throw new NoGpu('This browser has no WebGL 2, or it is switched off. Update the browser and the graphics driver, and check that hardware acceleration is on.');
        }
        const webgl = new Webgl();
        [webgl.#gl, webgl.#exported] = [gl, exported];
        webgl.#framebuffer = gl.createFramebuffer();
        [webgl.#noVertices, webgl.#vertices] = [gl.createVertexArray(), gl.createVertexArray()];
        gl.bindFramebuffer(gl.FRAMEBUFFER, webgl.#framebuffer);
        gl.disable(gl.DITHER);
        gl.disable(gl.BLEND);
        return webgl;
    }

    /** The name of the GPU, as far as the browser reports it. */
    get name() {
        const gl = this.#gl;
        const info = gl.getExtension('WEBGL_debug_renderer_info');
        return gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
    }

    get version() {
        return this.#gl.getParameter(this.#gl.VERSION);
    }

    /** The largest number of bytes that one draw can encrypt. */
    get largest() {
        return 16 * WIDTH * this.#gl.getParameter(this.#gl.MAX_TEXTURE_SIZE);
    }

    #check(what) {
        const gl = this.#gl;
        const error = gl.getError();
        if (gl.isContextLost()) {
            throw new Error('The GPU was lost: the browser or the driver has reset it. Reload the page; if it happens again, close other programs that use the GPU.');
        }
        if (error === gl.OUT_OF_MEMORY) throw new Error('The GPU has not enough memory. Close other programs and tabs that use the GPU, or choose a smaller size.');
        if (error !== gl.NO_ERROR) throw new Error(`${what} failed: OpenGL error 0x${error.toString(16)}. Update the graphics driver.`);
    }

    /** Returns the exported program of a kernel and a pass. */
    find(kernel, pass, bits) {
        const fits = (program) => program.kernel === kernel && program.pass === pass && [null, bits].includes(program.keyBits);
        return this.#exported.programs.find(fits);
    }

    #compile(program) {
        const key = `${program.kernel} ${program.pass} ${program.keyBits}`;
        if (this.#programs.has(key)) return this.#programs.get(key);
        const gl = this.#gl;
        const linked = gl.createProgram();
        for (const [stage, source] of [[gl.VERTEX_SHADER, program.vertex], [gl.FRAGMENT_SHADER, program.fragment]]) {
            const shader = gl.createShader(stage);
            gl.shaderSource(shader, source);
            gl.compileShader(shader);
            if (!gl.isContextLost() && !gl.getShaderParameter(shader, gl.COMPILE_STATUS)) {
                throw new Error(`The driver rejects a shader of ${program.kernel}: ${gl.getShaderInfoLog(shader)}. Update the graphics driver.`);
            }
            gl.attachShader(linked, shader);
            gl.deleteShader(shader);
        }
        if (program.feedback) gl.transformFeedbackVaryings(linked, [program.feedback], gl.INTERLEAVED_ATTRIBS);
        gl.linkProgram(linked);
        if (!gl.isContextLost() && !gl.getProgramParameter(linked, gl.LINK_STATUS)) {
            throw new Error(`The driver rejects ${program.kernel}: ${gl.getProgramInfoLog(linked)}. Update the graphics driver.`);
        }
        const uniforms = Object.fromEntries(program.uniforms.map((name) => [name, gl.getUniformLocation(linked, name)]));
        const compiled = { linked, uniforms };
        this.#check('A shader');
        this.#programs.set(key, compiled);
        return compiled;
    }

    #texture(name, width, height, internal = this.#gl.RGBA32UI, format = this.#gl.RGBA_INTEGER, content = null) {
        const gl = this.#gl;
        const old = this.#textures.get(name);
        if (old && old.height >= height) return old.texture;
        if (old) gl.deleteTexture(old.texture);
        const texture = gl.createTexture();
        gl.activeTexture(gl.TEXTURE0 + FILLING);
        gl.bindTexture(gl.TEXTURE_2D, texture);
        for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, filter, gl.NEAREST);
        for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
        gl.texImage2D(gl.TEXTURE_2D, 0, internal, width, height, 0, format, gl.UNSIGNED_INT, content);
        // WebGL refuses to draw to a texture that is bound to a texture unit.
        gl.bindTexture(gl.TEXTURE_2D, null);
        this.#check('A texture');
        this.#textures.set(name, { texture, height });
        return texture;
    }

    /** Copies whole rows of texels of 16 bytes to a texture. */
    #upload(name, words) {
        const gl = this.#gl;
        const height = words.length / (4 * WIDTH);
        const texture = this.#texture(name, WIDTH, height);
        gl.activeTexture(gl.TEXTURE0 + FILLING);
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, WIDTH, height, gl.RGBA_INTEGER, gl.UNSIGNED_INT, words);
        return texture;
    }

    #bind(unit, location, texture) {
        const gl = this.#gl;
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.uniform1i(location, unit);
    }

    #attach(outputs) {
        const gl = this.#gl;
        for (let index = 0; index < 2; index++) {
            gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + index, gl.TEXTURE_2D, outputs[index] ?? null, 0);
        }
        gl.drawBuffers(outputs.map((_, index) => gl.COLOR_ATTACHMENT0 + index));
    }

    #cover(texels) {
        const gl = this.#gl;
        gl.bindVertexArray(this.#noVertices);
        gl.viewport(0, 0, Math.min(texels, WIDTH), rows(texels));
        gl.drawArrays(gl.TRIANGLES, 0, 3);
    }

    #read(index, words) {
        const gl = this.#gl;
        gl.readBuffer(gl.COLOR_ATTACHMENT0 + index);
        gl.readPixels(0, 0, WIDTH, words.length / (4 * WIDTH), gl.RGBA_INTEGER, gl.UNSIGNED_INT, words);
    }

    /**
     * Encrypts or decrypts whole blocks by a kernel. `pass` is a member of `PASSES` in passes.js. The kernels of GPU Gems 3 support only
     * ECB. For XTS, `iv` is the encrypted tweak.
     */
    run(kernel, pass, key, data, iv) {
        const program = this.find(kernel, pass.opengl, 8 * key.length);
        const compiled = this.#compile(program);
        this.#gl.useProgram(compiled.linked);
        const result = kernel === 'opengl/fixslice' ? this.#fixslice(compiled, pass, key, data, iv) : this.#gems(program, compiled, pass, key, data);
        this.#check('A draw');
        return result;
    }

    // Runs a kernel of GPU Gems 3, chapter 36: see devices/opengl/src/blocks/gems.rs.
    #gems(program, compiled, pass, key, data) {
        const gl = this.#gl;
        const { uniforms } = compiled;
        const keys = new Uint32Array(4 * MOST_ROUND_KEYS);
        const expanded = expand(key);
        keys.set(new Uint32Array(expanded.buffer));
        gl.uniform1i(uniforms.rounds, expanded.length / 16 - 1);
        gl.uniform4uiv(uniforms.round_keys, keys);
        // Only a program with both directions has this uniform.
        gl.uniform1i(uniforms.mode, pass.decrypts ? 1 : 0);
        Object.entries(program.tables).forEach(([uniform, name], index) => {
            const content = Uint32Array.from(this.#exported.tables[name]);
            if (program.kernel.endsWith('uniform')) gl.uniform4uiv(uniforms[uniform], content);
            else this.#bind(1 + index, uniforms[uniform], this.#texture(name, content.length, 1, gl.R32UI, gl.RED_INTEGER, content));
        });
        return program.feedback ? this.#transform(data) : this.#draw(compiled, data);
    }

    #draw(compiled, data) {
        const blocks = data.length / 16;
        const words = new Uint32Array(4 * WIDTH * rows(blocks));
        const bytes = new Uint8Array(words.buffer);
        bytes.set(data);
        const input = this.#upload('first input', words);
        this.#attach([this.#texture('first output', WIDTH, rows(blocks))]);
        this.#bind(0, compiled.uniforms.blocks, input);
        this.#cover(blocks);
        this.#read(0, words);
        return bytes.subarray(0, data.length);
    }

    // Runs the vertex shader. Transform feedback records its results.
    #transform(data) {
        const gl = this.#gl;
        this.#attach([this.#texture('vertex target', WIDTH, 1)]);
        const buffer = (name, target) => {
            let entry = this.#buffers.get(name);
            if (!entry || entry.size < data.length) {
                if (entry) gl.deleteBuffer(entry.buffer);
                entry = { buffer: gl.createBuffer(), size: data.length };
                gl.bindBuffer(target, entry.buffer);
                gl.bufferData(target, data.length, gl.STREAM_COPY);
                this.#check('A buffer');
                this.#buffers.set(name, entry);
            }
            return entry.buffer;
        };
        const output = buffer('feedback', gl.TRANSFORM_FEEDBACK_BUFFER);
        gl.bindBuffer(gl.TRANSFORM_FEEDBACK_BUFFER, null);
        const input = buffer('vertices', gl.ARRAY_BUFFER);
        gl.bindVertexArray(this.#vertices);
        gl.bindBuffer(gl.ARRAY_BUFFER, input);
        gl.bufferSubData(gl.ARRAY_BUFFER, 0, data);
        gl.enableVertexAttribArray(0);
        gl.vertexAttribIPointer(0, 4, gl.UNSIGNED_INT, 16, 0);
        gl.enable(gl.RASTERIZER_DISCARD);
        gl.bindBufferBase(gl.TRANSFORM_FEEDBACK_BUFFER, 0, output);
        gl.beginTransformFeedback(gl.POINTS);
        gl.drawArrays(gl.POINTS, 0, data.length / 16);
        gl.endTransformFeedback();
        gl.disable(gl.RASTERIZER_DISCARD);
        const result = new Uint8Array(data.length);
        gl.getBufferSubData(gl.TRANSFORM_FEEDBACK_BUFFER, 0, result);
        gl.bindBufferBase(gl.TRANSFORM_FEEDBACK_BUFFER, 0, null);
        return result;
    }

    // Runs the constant-time kernel: see devices/opengl/src/fixslice.
    #fixslice(compiled, pass, key, data, iv) {
        const gl = this.#gl;
        const { uniforms } = compiled;
        const tiles = Math.ceil(data.length / 16 / (2 * HALF));
        const halves = [0, 1].map(() => new Uint32Array(4 * WIDTH * rows(tiles * HALF)));
        const bytes = halves.map((half) => new Uint8Array(half.buffer));
        // Calls `move` for each part of the data with four arguments: the half, the position in the half, and the start and the end of the
        // part in the data.
        const parts = (move) => {
            for (let part = 0; 16 * HALF * part < data.length; part++) {
                const at = 16 * HALF * part;
                move(bytes[part % 2], 16 * HALF * (part >> 1), at, Math.min(at + 16 * HALF, data.length));
            }
        };
        parts((half, at, from, to) => half.set(data.subarray(from, to), at));
        gl.uniform4uiv(uniforms.round_keys, planes(expand(key), Boolean(pass.decrypts)));
        gl.uniform1i(uniforms.width, WIDTH);
        gl.uniform1i(uniforms.tile_count, tiles);
        gl.uniform1i(uniforms.half_shift, HALF_SHIFT);
        this.#bind(0, uniforms.first_blocks, this.#upload('first input', halves[0]));
        this.#bind(1, uniforms.second_blocks, this.#upload('second input', halves[1]));
        this.#bind(2, uniforms.tiles, this.#upload('tiles', tileTexels(pass, data, iv, tiles)));
        const height = rows(tiles * HALF);
        // Both targets need the same height. A target that already exists may be higher than this draw needs, so its height is used.
        this.#attach(['first output', 'second output'].map((name) => this.#texture(name, WIDTH, Math.max(height, this.#textures.get('first output')?.height ?? 0))));
        this.#cover(tiles * HALF);
        halves.forEach((half, index) => this.#read(index, half));
        const result = new Uint8Array(data.length);
        parts((half, at, from, to) => result.set(half.subarray(at, at + to - from), from));
        return result;
    }
}

// Makes two texels for each tile: the chaining state before the tile, and the number of the tile's key.
function tileTexels(pass, data, iv, tiles) {
    const words = new Uint32Array(4 * WIDTH * rows(2 * tiles));
    const bytes = new Uint8Array(words.buffer);
    let tweak = pass.tweaks ? littleNumberOf(iv) : 0n;
    for (let tile = 0; tile < tiles; tile++) {
        const block = 2 * HALF * tile;
        if (pass.tweaks) {
            bytes.set(littleBlockOf(tweak), 32 * tile);
            tweak = tweakAfter(tweak, 2 * HALF);
        } else if (pass.looksBack) {
            bytes.set(tile === 0 ? iv : data.subarray(16 * block - 16, 16 * block), 32 * tile);
        } else if (pass.counterBits) {
            bytes.set(pass.state(iv, block), 32 * tile);
        }
    }
    return words;
}
