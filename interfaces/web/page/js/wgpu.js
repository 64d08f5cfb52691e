// Runs the programs of devices/wgpu on WebGPU. devices/wgpu/shaders/common.wgsl describes the bindings and the structures.

import { expand, inverse, littleBlockOf, tweakAfter } from './aes.js';
import { join } from './reference.js';

// The largest value of WebGPU's limit for the alignment of offsets of storage buffers, in bytes.
const ALIGNMENT = 256;
const TILE = 32;
const LAUNCH = 32;
const aligned = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

export class NoGpu extends Error {}

/** Returns the round keys of each key in the order that the shaders require: first for encryption, then for decryption. */
export function schedules(keys) {
    return join(...keys.map((key) => join(expand(key), inverse(expand(key)))));
}

/** Makes the tiles for a pass over messages of the form `{at, blocks, key, extra, iv}`. Positions and lengths are in blocks. */
export function tilesOf(pass, constants, wide, messages) {
    const whole = constants.rows * (wide ? constants.wide : 1);
    const tiles = [];
    for (const { at, blocks, key, extra = 0, iv } of messages) {
        let power = 1n;
        for (let start = 0; start < blocks; start += whole) {
            const tile = { at: at + start, blocks: Math.min(whole, blocks - start), key, extra };
            if (pass.tweaks) {
                tile.state = littleBlockOf(power);
                power = tweakAfter(power, whole);
            } else if (pass.looksBack) {
                [tile.extra, tile.state] = [start > 0 ? 1 : 0, iv];
            } else {
                tile.state = pass.state(iv, start);
            }
            tiles.push(tile);
        }
    }
    return tiles;
}

function bytesOfTiles(tiles) {
    const bytes = new Uint8Array(TILE * Math.max(tiles.length, 1));
    const words = new Uint32Array(bytes.buffer);
    tiles.forEach(({ at, blocks, key = 0, extra = 0, state }, index) => {
        words.set([at, blocks, key, extra], 8 * index);
        if (state) bytes.set(state, TILE * index + 16);
    });
    return bytes;
}

export class Wgpu {
    #device;
    #layout;
    #exported;
    #pipelines = new Map();
    #lost;
    #loss;

    /** Opens the GPU. `exported` is the file wgpu.json. */
    static async open(exported) {
        if (!navigator.gpu) {
            throw new NoGpu(
                isSecureContext
                    ? 'This browser has no WebGPU. Chrome and Edge have it from version 113, Safari from 26, Firefox from 141 on Windows. In other browsers, look for WebGPU in the settings for experiments.'
                    : 'WebGPU is available only on pages by https or on localhost. Open this page in one of these ways.',
            );
        }
        const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
        if (!adapter) {
            throw new NoGpu('The browser has WebGPU but no GPU for it. Update the graphics driver, and check that hardware acceleration is on in the settings of the browser.');
        }
        const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
        const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
        const gpu = new Wgpu();
        [gpu.#device, gpu.#exported] = [device, exported];
        gpu.info = adapter.info;
        gpu.largest = Math.min(maxBufferSize, maxStorageBufferBindingSize);
        gpu.#loss = device.lost.then(({ message }) => {
            gpu.#lost = `The GPU was lost (${message || 'no reason given'}). Reload the page; if it happens again, close other programs that use the GPU.`;
        });
        const entry = (binding, type) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } });
        gpu.#layout = device.createBindGroupLayout({
            entries: [entry(0, 'storage'), entry(1, 'read-only-storage'), entry(2, 'read-only-storage'), entry(3, 'read-only-storage')],
        });
        return gpu;
    }

    /** The name of the GPU, as far as the browser reports it. */
    get name() {
        const { description, device, architecture, vendor } = this.info;
        return description || [vendor, device || architecture].filter(Boolean).join(' ') || 'a GPU that the browser does not name';
    }

    get constants() {
        return this.#exported.constants;
    }

    program(name) {
        return this.#exported.programs.find((program) => program.name === name);
    }

    /** Compiles a program. */
    async pipeline(name) {
        if (!this.#pipelines.has(name)) {
            const module = this.#device.createShaderModule({ label: name, code: this.program(name).wgsl });
            const layout = this.#device.createPipelineLayout({ bindGroupLayouts: [this.#layout] });
            this.#pipelines.set(name, this.#device.createComputePipelineAsync({ label: name, layout, compute: { module, entryPoint: 'main' } }));
        }
        return this.#pipelines.get(name);
    }

    /** Compiles the programs whose names `isUsed` accepts. Some browsers compile them in parallel. */
    compile(isUsed) {
        const names = this.#exported.programs.map(({ name }) => name).filter(isUsed);
        return this.#scoped(() => Promise.all(names.map((name) => this.pipeline(name))));
    }

    /** Runs `work`, and converts errors of WebGPU to exceptions whose messages state a remedy. */
    async #scoped(work) {
        this.#device.pushErrorScope('validation');
        this.#device.pushErrorScope('out-of-memory');
        let result, failure;
        try {
            // If the device is lost, `work` may never end.
            result = await Promise.race([work(), this.#loss]);
        } catch (error) {
            failure = error;
        }
        if (this.#lost) throw new Error(this.#lost);
        const [memory, invalid] = await Promise.all([this.#device.popErrorScope(), this.#device.popErrorScope()]).catch(() => []);
        // After a failed call, the browser needs a moment to report that the device is lost.
        if (failure) await new Promise((resolve) => setTimeout(resolve, 100));
        if (this.#lost) throw new Error(this.#lost);
        if (memory) throw new Error('The GPU has not enough memory. Close other programs and tabs that use the GPU, or choose a smaller size.');
        if (invalid) throw new Error(`WebGPU refuses a call: ${invalid.message}`);
        if (failure) throw failure;
        return result;
    }

    /**
     * Runs launches on `data`, which the launches read and write. A launch has the program's name, its tiles, the number of
     * invocations, and the members of `Launch`. Returns the data, and the time in seconds from host to host. If `repeat` is given,
     * the launches are repeated this number of times on the GPU, and `gpuTime` is the time of one repetition.
     */
    run({ data, keys, launches, repeat = 0 }) {
        return this.#scoped(() => this.#run(data, keys, launches, repeat));
    }

    async #run(data, keys, launches, repeat) {
        const pipelines = await Promise.all(launches.map(({ program }) => this.pipeline(program)));
        const parameters = this.#parameters(keys, launches);
        const device = this.#device;
        const buffer = (size, usage) => device.createBuffer({ size, usage });
        const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
        const work = buffer(data.length, STORAGE | COPY_DST | COPY_SRC);
        const read = buffer(data.length, COPY_DST | MAP_READ);
        const constant = buffer(parameters.bytes.length, STORAGE | COPY_DST);
        try {
            const part = (offset, size) => ({ buffer: constant, offset, size });
            const groups = launches.map((_, index) => {
                const resources = [{ buffer: work }, part(parameters.tiles, parameters.schedules - parameters.tiles),
                    part(parameters.schedules, parameters.bytes.length - parameters.schedules), part(ALIGNMENT * index, LAUNCH)];
                const entries = resources.map((resource, binding) => ({ binding, resource }));
                return device.createBindGroup({ layout: this.#layout, entries });
            });
            const dispatch = (encoder, times) => {
                const pass = encoder.beginComputePass();
                for (let time = 0; time < times; time++) {
                    launches.forEach(({ program, invocations }, index) => {
                        pass.setPipeline(pipelines[index]);
                        pass.setBindGroup(0, groups[index]);
                        pass.dispatchWorkgroups(Math.ceil(invocations / this.program(program).workgroup));
                    });
                }
                pass.end();
            };
            device.queue.writeBuffer(constant, 0, parameters.bytes);
            await device.queue.onSubmittedWorkDone();
            const start = performance.now();
            device.queue.writeBuffer(work, 0, data);
            const encoder = device.createCommandEncoder();
            dispatch(encoder, 1);
            encoder.copyBufferToBuffer(work, 0, read, 0, data.length);
            device.queue.submit([encoder.finish()]);
            await read.mapAsync(GPUMapMode.READ);
            const result = new Uint8Array(read.getMappedRange()).slice();
            const time = (performance.now() - start) / 1000;
            read.unmap();
            return { data: result, time, gpuTime: repeat ? await this.#repeat(dispatch, repeat) : undefined };
        } finally {
            for (const one of [work, read, constant]) one.destroy();
        }
    }

    async #repeat(dispatch, times) {
        const encoder = this.#device.createCommandEncoder();
        dispatch(encoder, times);
        const start = performance.now();
        this.#device.queue.submit([encoder.finish()]);
        await this.#device.queue.onSubmittedWorkDone();
        return (performance.now() - start) / 1000 / times;
    }

    // Makes the buffer that programs only read. It contains the launches, the tiles, the round keys, and then the T-tables.
    #parameters(keys, launches) {
        const tables = [];
        const first = schedules(keys);
        const rounds = keys[0].length / 4 + 6;
        const tiles = aligned(ALIGNMENT * launches.length);
        const all = launches.flatMap((launch) => launch.tiles);
        const bytesOfAll = bytesOfTiles(all);
        const schedulesAt = aligned(tiles + bytesOfAll.length);
        const head = new Uint8Array(schedulesAt);
        head.set(bytesOfAll, tiles);
        let firstTile = 0;
        launches.forEach((launch, index) => {
            const { program, option = 0, to = 0, step = 0, steps = 0 } = launch;
            let { scratch = 0 } = launch;
            if (program.startsWith('table')) {
                scratch = (first.length + tables.reduce((sum, table) => sum + table.length, 0)) / 16;
                tables.push(Uint8Array.from(this.#exported.tables[program.endsWith('decrypt') && !program.includes('cfb') ? 'decrypt' : 'encrypt']));
            }
            const words = [firstTile, launch.tiles.length, rounds, option, to, scratch, step, steps];
            new Uint32Array(head.buffer, ALIGNMENT * index, 8).set(words);
            firstTile += launch.tiles.length;
        });
        return { bytes: join(head, first, ...tables), tiles, schedules: schedulesAt };
    }

    /** Makes the launches of a pass over messages in `data`: see `tilesOf`. For XTS, `extra` is the place of the encrypted tweak. */
    launchesOfPass(pass, family, wide, messages, { to = 0, step = 0, tweakKeys } = {}) {
        const program = `${family}${wide ? '' : '_lane'}_${pass.wgpu}`;
        const tiles = tilesOf(pass, this.constants, wide, messages);
        const launches = [];
        if (pass.tweaks) launches.push(this.blocks(messages.map(({ extra }, index) => ({ at: extra, key: tweakKeys[index] }))));
        const option = pass.counterBits === 32 ? 0 : 0xffffffff;
        launches.push({ program, tiles, option, to, step, invocations: tiles.length * (wide ? this.constants.wide : 1) });
        return launches;
    }

    /** Makes the launch that encrypts single blocks of the form `{at, key}`. */
    blocks(blocks) {
        const tiles = blocks.map(({ at, key }) => ({ at, key, blocks: 1 }));
        return { program: 'blocks_encrypt', tiles, invocations: Math.ceil(tiles.length / this.constants.chainMessages) };
    }
}
