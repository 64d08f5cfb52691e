// The self-test of the programs of devices/wgpu: every result is compared with WebCrypto.

import { PASSES } from './passes.js';
import { Reference, equal, join, random, xor } from './reference.js';

/** Lengths of messages in blocks. They end within tiles, both for tiles of one invocation and for tiles of 32 invocations. */
const LENGTHS = [1, 31, 32, 33, 1023, 1024, 1025, 2100];

const families = ['bitslice', 'table'];

/** Selects the programs that the tests run: all except the programs for OCB3 and for data in device memory. */
export const PROGRAMS = (name) => !name.includes('ocb') && name !== 'tails';
const isDone = (status) => status === 1;

async function keysOf(bytes) {
    const keys = [random(bytes), random(bytes)];
    return { keys, references: await Promise.all(keys.map((key) => Reference.of(key))) };
}

/** Sections of the buffer `data`, in blocks. */
class Layout {
    blocks = 0;
    section(blocks) {
        this.blocks += blocks;
        return this.blocks - blocks;
    }
}

/** Runs a pass over messages of several lengths under two keys. */
async function testPass(gpu, pass, family, wide, bytes) {
    const { keys, references } = await keysOf(bytes);
    const layout = new Layout();
    const messages = LENGTHS.map((blocks, index) => {
        const iv = random(16);
        // These counters wrap within the message.
        if (pass.counterBits) iv.fill(255, 12, 15);
        return { blocks, key: index % 2, extra: pass.tweaks ? layout.section(1) : 0, iv, data: random(16 * blocks) };
    });
    for (const message of messages) message.at = layout.section(message.blocks);
    const to = pass.looksBack ? layout.section(layout.blocks) : 0;
    const data = new Uint8Array(16 * layout.blocks);
    for (const { at, extra, iv, data: bytesOfMessage } of messages) {
        if (pass.tweaks) data.set(iv, 16 * extra);
        data.set(bytesOfMessage, 16 * at);
    }
    const tweakKeys = messages.map(({ key }) => 1 - key);
    const launches = gpu.launchesOfPass(pass, family, wide, messages, { to, tweakKeys });
    const result = (await gpu.run({ data, keys, launches })).data;
    for (const message of messages) {
        const out = result.slice(16 * (to + message.at), 16 * (to + message.at + message.blocks));
        const checked = { ...message, reference: references[message.key], tweak: references[1 - message.key] };
        if (!(await pass.compare(checked, out))) return `wrong for ${message.blocks} blocks`;
    }
    return '';
}

// The serial modes. `option` is the number of the mode in devices/wgpu/shaders/chain.wgsl.
const CHAINS = [
    { name: 'CBC encryption', option: 0, expected: ({ reference, iv, data }) => reference.cbcEncrypt(iv, data) },
    { name: 'CFB encryption', option: 1, expected: ({ reference, iv, data }) => serial(reference, iv, data, (block, text) => [xor(block, text), xor(block, text)]) },
    { name: 'CFB8 encryption', option: 2, expected: (message) => shifting(message, 8, false) },
    { name: 'CFB8 decryption', option: 3, expected: (message) => shifting(message, 8, true) },
    { name: 'CFB1 encryption', option: 4, expected: (message) => shifting(message, 1, false) },
    { name: 'CFB1 decryption', option: 5, expected: (message) => shifting(message, 1, true) },
    { name: 'OFB', option: 6, expected: ({ reference, iv, data }) => serial(reference, iv, data, (block, text) => [xor(block, text), block]) },
    { name: 'PCBC encryption', option: 7, expected: pcbcEncrypt },
    { name: 'PCBC decryption', option: 8, decrypts: true, expected: pcbcDecrypt },
    { name: 'CBC-MAC', option: 9, isMac: true, expected: async ({ reference, iv, data }) => (await reference.cbcEncrypt(iv, data)).slice(-16) },
];

/** Computes a mode in which the cipher is applied to the chaining state. `step` returns the output and the next state. */
async function serial(reference, iv, data, step) {
    const out = [];
    let state = iv;
    for (let at = 0; at < data.length; at += 16) {
        const text = data.subarray(at, at + 16);
        const [result, next] = step(await reference.encryptBlock(state), text);
        out.push(result);
        state = next;
    }
    return join(...out);
}

/** Computes CFB with segments of 8 bits or 1 bit. */
async function shifting({ reference, iv, data }, bits, decrypts) {
    const out = new Uint8Array(data.length);
    let state = iv.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    for (let bit = 0; bit < 8 * data.length; bit += bits) {
        const [at, shift, mask] = [bit >> 3, 8 - bits - (bit & 7), (1 << bits) - 1];
        const block = Uint8Array.from({ length: 16 }, (_, i) => Number((state >> BigInt(120 - 8 * i)) & 0xffn));
        const text = (data[at] >> shift) & mask;
        const result = text ^ ((await reference.encryptBlock(block))[0] >> (8 - bits));
        out[at] |= result << shift;
        state = ((state << BigInt(bits)) | BigInt(decrypts ? text : result)) & ((1n << 128n) - 1n);
    }
    return out;
}

async function pcbcEncrypt({ reference, iv, data }) {
    const out = [];
    let state = iv;
    for (let at = 0; at < data.length; at += 16) {
        const text = data.subarray(at, at + 16);
        out.push(await reference.encryptBlock(xor(text, state)));
        state = xor(text, out.at(-1));
    }
    return join(...out);
}

async function pcbcDecrypt({ reference, iv, data }) {
    const blocks = await reference.decryptBlocks(data);
    const out = [];
    let state = iv;
    for (let at = 0; at < data.length; at += 16) {
        out.push(xor(blocks.subarray(at, at + 16), state));
        state = xor(out.at(-1), data.subarray(at, at + 16));
    }
    return join(...out);
}

async function testChain(gpu, chain, bytes) {
    const { keys, references } = await keysOf(bytes);
    const layout = new Layout();
    const small = chain.option >= 2 && chain.option <= 5;
    // There are more messages than one invocation processes. They have several lengths, and the longest comes first.
    const messages = Array.from({ length: small ? 3 : 11 }, (_, index) => ({
        key: index % 2, iv: random(16), data: random(small ? 16 : 16 * (1 + ((29 - index) % 9))), extra: layout.section(1),
    }));
    messages.sort((a, b) => b.data.length - a.data.length);
    for (const message of messages) message.at = layout.section(message.data.length / 16);
    const invocations = Math.ceil(messages.length / gpu.constants.chainMessages);
    const rounds = bytes / 4 + 6;
    const scratch = layout.section(invocations * (rounds + 1) * gpu.constants.chainMessages);
    const data = new Uint8Array(16 * layout.blocks);
    for (const message of messages) {
        data.set(message.iv, 16 * message.extra);
        data.set(message.data, 16 * message.at);
    }
    const tiles = messages.map(({ at, data: text, key, extra }) => ({ at, blocks: text.length, key, extra }));
    const launch = (program) => ({ program: `${program}_${chain.decrypts ? 'decrypt' : 'encrypt'}`, tiles, option: chain.option, scratch, steps: gpu.constants.chainSteps, invocations });
    const launches = [launch('chain_keys'), launch('chain')];
    const result = (await gpu.run({ data, keys, launches })).data;
    for (const message of messages) {
        const [at, length] = chain.isMac ? [message.extra, 16] : [message.at, message.data.length];
        const expected = await chain.expected({ ...message, reference: references[message.key] });
        if (!equal(result.slice(16 * at, 16 * at + length), expected)) return `wrong for ${message.data.length} bytes`;
    }
    return '';
}

/** Makes the launches of GHASH of several messages. The items of `hashed` have the form `{at, blocks, key, output}`. */
function ghash(gpu, layout, zeros, hashed) {
    const { ghashRun, ghashLevels } = gpu.constants;
    const scratch = layout.section(ghashLevels * zeros.length);
    const powers = { program: 'ghash_powers', tiles: zeros.map((at, key) => ({ at, blocks: 1, key })), scratch, invocations: zeros.length };
    const launches = [powers];
    for (let option = 0; hashed.length > 0; option++) {
        const [tiles, next] = [[], []];
        for (const { at, blocks, key, output } of hashed) {
            const runs = Math.ceil(blocks / ghashRun);
            const to = runs === 1 ? output : layout.section(runs);
            // Runs are counted from the end, so the first run may be short.
            const short = blocks - (runs - 1) * ghashRun;
            for (let run = 0; run < runs; run++) {
                const skip = run === 0 ? 0 : short + (run - 1) * ghashRun;
                tiles.push({ at: at + skip, blocks: run === 0 ? short : ghashRun, key, extra: to + run });
            }
            if (runs > 1) next.push({ at: to, blocks: runs, key, output });
        }
        launches.push({ program: 'ghash_runs', tiles, scratch, option, invocations: tiles.length });
        hashed = next;
    }
    return launches;
}

const lengthsBlock = (aad, data) => {
    const block = new DataView(new ArrayBuffer(16));
    block.setUint32(4, 8 * aad);
    block.setUint32(12, 8 * data);
    return new Uint8Array(block.buffer);
};

/** Seals or opens messages of GCM. When opening, the last message has a wrong tag. */
async function testGcm(gpu, family, wide, bytes, opens) {
    const { keys, references } = await keysOf(bytes);
    const layout = new Layout();
    const zeros = keys.map(() => layout.section(1));
    const messages = await Promise.all([0, 1, 16, 500, 16384, 17, 66000].map(async (length, index) => {
        const message = { key: index % 2, nonce: random(12), aad: random(7 * index), plain: random(length) };
        const sealed = await references[message.key].gcmSeal(message.nonce, message.aad, message.plain);
        return { ...message, cipher: sealed.slice(0, length), tag: sealed.slice(length), mask: layout.section(1) };
    }));
    const count = messages.length;
    const refused = opens ? messages.at(-1) : undefined;
    if (refused) refused.tag[3] ^= 16;
    const tags = layout.section(2 * count);
    for (const message of messages) {
        message.hashed = layout.section(Math.ceil(message.aad.length / 16));
        message.at = layout.section(Math.ceil(message.plain.length / 16));
        message.end = layout.section(1);
        message.blocks = message.end - message.at;
    }
    const hashes = layout.section(count);
    const launches = [gpu.blocks([...zeros.map((at, key) => ({ at, key })), ...messages.map(({ mask, key }) => ({ at: mask, key }))])];
    const ctr = (gated) => {
        const data = messages.map(({ at, blocks, key, nonce }, index) => ({ at, blocks, key, extra: tags + count + index, iv: join(nonce, Uint8Array.of(0, 0, 0, 2)) }));
        launches.push(...gpu.launchesOfPass(PASSES.find(({ counterBits }) => counterBits === 32), family, wide, data.filter(({ blocks }) => blocks > 0), { step: gated ? 1 : 0 }));
    };
    if (!opens) {
        ctr(false);
        const partial = messages.filter(({ plain }) => plain.length % 16 > 0);
        const tiles = partial.map(({ at, plain }) => ({ at: at + Math.floor(plain.length / 16), blocks: plain.length % 16 }));
        launches.push({ program: 'gcm_pads', tiles, invocations: tiles.length });
    }
    const hashed = messages.map(({ hashed: at, end, key }, index) => ({ at, blocks: end + 1 - at, key, output: hashes + index }));
    launches.push(...ghash(gpu, layout, zeros, hashed));
    const tiles = messages.map(({ mask, tag }, index) => ({ at: hashes + index, blocks: 16, extra: mask, state: tag }));
    launches.push({ program: 'gcm_tags', tiles, scratch: tags, option: opens ? 1 : 0, invocations: count });
    if (opens) ctr(true);
    const data = new Uint8Array(16 * layout.blocks);
    for (const { nonce, mask, aad, hashed: at, plain, cipher, at: place, end } of messages) {
        data.set(join(nonce, Uint8Array.of(0, 0, 0, 1)), 16 * mask);
        data.set(aad, 16 * at);
        data.set(opens ? cipher : plain, 16 * place);
        data.set(lengthsBlock(aad.length, plain.length), 16 * end);
    }
    const result = (await gpu.run({ data, keys, launches })).data;
    for (const [index, message] of messages.entries()) {
        const block = (at) => result.slice(16 * at, 16 * at + 16);
        const out = result.slice(16 * message.at, 16 * message.at + message.plain.length);
        const status = block(tags + count + index)[0];
        if (message === refused) {
            if (isDone(status) || out.some((byte) => byte !== 0)) return 'a message with a wrong tag is opened';
        } else if (!isDone(status) || !equal(out, opens ? message.plain : message.cipher)) {
            return `wrong for ${message.plain.length} bytes`;
        } else if (!opens && !equal(block(tags + index), message.tag)) {
            return `the tag for ${message.plain.length} bytes is wrong`;
        }
    }
    return '';
}

/** Returns all tests: for each, its kernel, its name, and a function that returns a message if the test fails, or an empty string. */
export function tests(gpu) {
    const list = [];
    const add = (kernel, name, test) => list.push({ kernel, name, test });
    // Keys of 192 bits are not tested, because Chromium's WebCrypto does not support them.
    for (const bytes of [16, 32]) {
        for (const family of families) {
            const kernel = `wgpu/${family}`;
            for (const wide of [true, false]) {
                const shape = `AES-${8 * bytes}, ${wide ? '32 invocations for each tile' : 'one invocation for each tile'}`;
                for (const pass of PASSES) add(kernel, `${pass.name}, ${shape}`, () => testPass(gpu, pass, family, wide, bytes));
                add(kernel, `GCM sealing, ${shape}`, () => testGcm(gpu, family, wide, bytes, false));
                add(kernel, `GCM opening, ${shape}`, () => testGcm(gpu, family, wide, bytes, true));
            }
        }
        for (const chain of CHAINS) add('wgpu/bitslice', `${chain.name}, AES-${8 * bytes}`, () => testChain(gpu, chain, bytes));
    }
    return list;
}

/** The minimum time of a measurement in seconds. */
const LEAST = 0.05;

/** Returns the number of repetitions of a launch that takes `seconds`. */
const repetitions = (seconds) => Math.min(1000, Math.max(1, Math.ceil(LEAST / seconds)));

/**
 * Compares a pass on one message of `bytes` bytes with WebCrypto, and then measures it. Returns rates in bytes per second: `resident` for
 * data that stay on the GPU, and `host` for data that are copied from the host and back.
 */
export async function rate(gpu, pass, family, wide, bytes, keyBytes, rounds = 3) {
    const { keys, references } = await keysOf(keyBytes);
    const layout = new Layout();
    const message = { key: 0, iv: random(16), extra: pass.tweaks ? layout.section(1) : 0, blocks: bytes / 16, data: random(bytes) };
    message.at = layout.section(message.blocks);
    const to = pass.looksBack ? layout.section(layout.blocks) : 0;
    const data = new Uint8Array(16 * layout.blocks);
    if (pass.tweaks) data.set(message.iv, 16 * message.extra);
    data.set(message.data, 16 * message.at);
    const launches = gpu.launchesOfPass(pass, family, wide, [message], { to, tweakKeys: [1] });
    const first = await gpu.run({ data, keys, launches });
    const out = first.data.slice(16 * (to + message.at), 16 * (to + message.at) + bytes);
    if (!(await pass.compare({ ...message, reference: references[0], tweak: references[1] }, out))) throw new Error('wrong result');
    const trial = await gpu.run({ data, keys, launches, repeat: 1 });
    const results = [];
    for (let round = 0; round < rounds; round++) results.push(await gpu.run({ data, keys, launches, repeat: repetitions(trial.gpuTime) }));
    const rates = (member) => results.map((result) => bytes / result[member]).sort((a, b) => a - b);
    const summary = (list) => ({ median: list[list.length >> 1], slowest: list[0], fastest: list.at(-1) });
    return { resident: summary(rates('gpuTime')), host: summary(rates('time')) };
}
