// The self-test of the programs of devices/opengl, and the experiment of GPU Gems 3, chapter 36, Figure 36-9.

import { PASSES } from './passes.js';
import { Reference, equal, random } from './reference.js';

/** The kernels of the experiment, in the order of the plot. */
export const KERNELS = [
    { name: 'opengl/gems-vertex', label: 'vertex program, textures' },
    { name: 'opengl/gems-fragment', label: 'fragment program, textures' },
    { name: 'opengl/gems-vertex-uniform', label: 'vertex program, uniform arrays' },
    { name: 'opengl/gems-fragment-uniform', label: 'fragment program, uniform arrays' },
    { name: 'opengl/fixslice', label: 'constant time' },
];

/** Kernels that are tested but not shown in the plot. Each has one program for both directions. */
const BY_MODE = ['opengl/gems-vertex-mode', 'opengl/gems-fragment-mode'];

/** The chapter's rates on a GeForce 8800 GTS in bytes per second, with batches of 1 MiB (section 36.4). */
export const CHAPTER = { batch_bytes: 1 << 20, vertex: 53e6, fragment: 95e6, openssl: 55e6 };

const ECB = PASSES[0];
// Lengths in blocks. Most of them fill a tile, or a row of a texture, only in part.
const LENGTHS = [1, 63, 64, 65, 511, 513, 5000];

/** Returns all tests: for each, its kernel, its name, and a function that returns a message if the test fails, or an empty string. */
export function tests(webgl) {
    const list = [];
    // Keys of 192 bits are not tested, because Chromium's WebCrypto does not support them.
    for (const bytes of [16, 32]) {
        for (const name of [...KERNELS.map((kernel) => kernel.name), ...BY_MODE]) {
            for (const pass of PASSES.filter(({ opengl }) => opengl && webgl.find(name, opengl, 8 * bytes))) {
                list.push({ kernel: name, name: `${pass.name}, AES-${8 * bytes}`, test: () => testPass(webgl, name, pass, bytes) });
            }
        }
    }
    return list;
}

async function testPass(webgl, kernel, pass, bytes) {
    const [key, tweakKey] = [random(bytes), random(bytes)];
    const [reference, tweak] = await Promise.all([key, tweakKey].map((one) => Reference.of(one)));
    for (const blocks of LENGTHS) {
        const [iv, data] = [random(16), random(16 * blocks)];
        // These counters wrap within the message.
        if (pass.counterBits) iv.fill(255, 12, 15);
        const state = pass.tweaks ? await tweak.encryptBlock(iv) : iv;
        const out = webgl.run(kernel, pass, key, data, state);
        if (!(await pass.compare({ reference, tweak, iv, data }, out))) return `wrong for ${blocks} blocks`;
    }
    return '';
}

/**
 * Measures AES-128-ECB from host to host, batch by batch, for each kernel and batch size. Each output is compared with WebCrypto.
 * `report` is called with each point. A run encrypts `total` bytes, and the rates are means of `runs` runs after a warm-up run.
 */
export async function experiment(webgl, { batches, total, runs }, report, signal) {
    const key = random(16);
    const reference = await Reference.of(key);
    const input = random(total);
    for (const batch of batches.filter((one) => one <= Math.min(total, webgl.largest))) {
        for (const { name } of KERNELS) {
            const times = [];
            let expected;
            for (let run = 0; run <= runs; run++) {
                signal.throwIfAborted();
                const out = new Uint8Array(total);
                const start = performance.now();
                for (let at = 0; at + batch <= total; at += batch) out.set(webgl.run(name, ECB, key, input.subarray(at, at + batch)), at);
                const time = (performance.now() - start) / 1000;
                if (run > 0) times.push(time);
                // All runs have the same input. The output of the first run is compared with WebCrypto, and all other outputs are compared
                // with this output.
                expected ??= (await ECB.compare({ reference, data: input }, out)) ? out : undefined;
                if (!expected || !equal(out, expected)) throw new Error(`${name} encrypts batches of ${batch} bytes WRONGLY: nothing was measured.`);
                // The wait keeps the page usable during the experiment.
                await new Promise((resolve) => setTimeout(resolve));
            }
            const mean = times.reduce((sum, time) => sum + time, 0) / runs;
            const rate = (time) => total / time;
            report({ name, batch_bytes: batch, bytes_per_second: rate(mean), slowest: rate(Math.max(...times)), fastest: rate(Math.min(...times)) });
        }
    }
}
