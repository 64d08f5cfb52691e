// Compares rates and sizes of the package with those of WebCrypto and of packages of npm: `make bench-web`. Each figure is the median of
// rounds in which the candidates take turns.

import { readFileSync, readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { brotliCompressSync } from 'node:zlib';

import { compare } from './cobblestone.js';

const { LOCKSTEP_WEB: folder, LOCKSTEP_AEAD_ONLY: small, LOCKSTEP_SUITE: suite } = process.env;
const web = await import(pathToFileURL(`${folder}/lockstep.js`));
await web.init();
const { subtle } = globalThis.crypto;

const ROUNDS = 9;
const MIB = 1 << 20;
const noise = (length) => {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
    return bytes;
};
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

/** Returns the median times of the candidates in seconds. Each candidate is called once before the rounds. */
async function times(candidates, rounds = ROUNDS) {
    const found = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
    for (let round = -1; round < rounds; round++) {
        for (const [name, run] of Object.entries(candidates)) {
            const start = performance.now();
            await run();
            if (round >= 0) found[name].push((performance.now() - start) / 1000);
        }
    }
    return Object.fromEntries(Object.entries(found).map(([name, list]) => [name, median(list)]));
}

function print(title, found, unit, convert) {
    console.log(`\n${title}`);
    for (const [name, time] of Object.entries(found)) console.log(`  ${name.padEnd(36)} ${convert(time).toFixed(2).padStart(10)} ${unit}`);
}

/** Loads the module of the suite, which offers CTR on its own memory. */
function kernel() {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(suite)), { env: { print_text() {} } });
    const place = (bytes) => {
        const at = exports.allocate(bytes.length);
        new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
        return at;
    };
    return { exports, place };
}

async function ctr() {
    const data = noise(4 * MIB);
    const counter = noise(16);
    const [key, key128] = [noise(32), noise(16)];
    const { exports, place } = kernel();
    const [at256, at128, atCounter, atData] = [key, key128, counter, data].map(place);
    const { ctr: nobleCtr } = await import('@noble/ciphers/aes.js');
    const { AES } = await import('@stablelib/aes');
    const { CTR } = await import('@stablelib/ctr');
    const { default: aesjs } = await import('aes-js');
    const { default: asmcrypto } = await import('asmcrypto.js');
    const { AesWasm, Memory, Aes128Ctr128BEKey } = await import('@hazae41/aes.wasm');
    await AesWasm.initBundled();
    const memory = new Memory(data);
    const output = new Uint8Array(data.length);
    const imported = await subtle.importKey('raw', key, 'AES-CTR', false, ['encrypt']);
    // All candidates compute the same result, except a cipher whose state continues from call to call.
    const first = Buffer.from(nobleCtr(key, counter).encrypt(data.slice(0, 1000)));
    exports.ctr(at256, 32, atCounter, atData, 1000);
    if (Buffer.compare(first, Buffer.from(exports.memory.buffer, atData, 1000)) !== 0) throw new Error('CTR differs');
    const rate = (time) => data.length / time / 1e6;
    print('CTR-256, 4 MiB', await times({
        'lockstep, SIMD128': () => exports.ctr(at256, 32, atCounter, atData, data.length),
        '@noble/ciphers': () => nobleCtr(key, counter).encrypt(data, output),
        '@stablelib/ctr': () => new CTR(new AES(key), counter).streamXOR(data, output),
        'aes-js': () => new aesjs.ModeOfOperation.ctr(key, new aesjs.Counter(counter)).encrypt(data),
        'asmcrypto.js': () => asmcrypto.AES_CTR.encrypt(data, key, counter),
        WebCrypto: () => subtle.encrypt({ name: 'AES-CTR', counter, length: 64 }, imported, data),
    }, 5), 'MB/s', rate);
    print('CTR-128, 4 MiB', await times({
        'lockstep, SIMD128': () => exports.ctr(at128, 16, atCounter, atData, data.length),
        '@hazae41/aes.wasm': () => new Aes128Ctr128BEKey(new Memory(key128), new Memory(counter)).apply_keystream(memory),
    }, 5), 'MB/s', rate);
}

async function messages() {
    const { gcm } = await import('@noble/ciphers/aes.js');
    const [key, nonce] = [noise(32), noise(12)];
    const mode = web.aead('GCM', key);
    const imported = await subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt']);
    for (const length of [16, 1024, 16384, 4 * MIB]) {
        const data = noise(length);
        const count = Math.max(1, Math.min(2000, (4 * MIB) / length / 16)) | 0;
        const repeat = (run) => async () => {
            for (let i = 0; i < count; i++) await run();
        };
        const found = await times({
            'lockstep, seal': () => {
                for (let i = 0; i < count; i++) mode.seal(nonce, null, data);
            },
            'lockstep, sealAsync': repeat(() => mode.sealAsync(nonce, null, data)),
            WebCrypto: repeat(() => subtle.encrypt({ name: 'AES-GCM', iv: nonce }, imported, data)),
            '@noble/ciphers': () => {
                for (let i = 0; i < count; i++) gcm(key, nonce).encrypt(data);
            },
        });
        print(`GCM-256, a message of ${length} bytes`, found, 'us', (time) => (time / count) * 1e6);
    }
}

/** Makes a stream of bytes from memory, in pieces of a mebibyte. */
function source(data) {
    let at = 0;
    return new ReadableStream({
        pull(controller) {
            if (at >= data.length) return controller.close();
            controller.enqueue(data.subarray(at, (at += MIB)));
            return undefined;
        },
    });
}

async function drain(stream) {
    const reader = stream.getReader();
    while (!(await reader.read()).done);
}

async function cobblestone() {
    for (const direction of ['encrypt', 'decrypt']) await compare(direction);
}

/** Measures the encryption of a short file, from the call of `encryptStream` to the end of the stream. */
async function short() {
    const keyFile = web.generateKeyFile();
    for (const length of [1000, 65536, MIB]) {
        const data = noise(length);
        const count = Math.ceil((4 * MIB) / (length + 65536));
        const file = (backend) => async () => {
            for (let i = 0; i < count; i++) await drain(source(data).pipeThrough(web.encryptStream({ keyFile, backend })));
        };
        const found = await times(Object.fromEntries(['auto', 'wasm', 'webcrypto'].map((backend) => [`stream, ${backend}`, file(backend)])));
        print(`Cobblestone-256, encrypt, a file of ${length} bytes`, found, 'us', (time) => (time / count) * 1e6);
    }
}

/** Measures the sum of the rates of several workers, each of which encrypts by WebAssembly. */
async function workers(length) {
    const all = Array.from({ length: 4 }, () => new Worker(new URL(import.meta.url), { workerData: { length } }));
    const next = (worker) => new Promise((resolve) => worker.once('message', resolve));
    await Promise.all(all.map(next));
    const found = {};
    for (const [name, time] of Object.entries(await times(Object.fromEntries([1, 2, 4].map((count) => [count, () => {
        return Promise.all(all.slice(0, count).map((worker) => (worker.postMessage('go'), next(worker))));
    }]))))) found[`${name} workers, wasm`] = time / name;
    await Promise.all(all.map((worker) => worker.terminate()));
    print(`Cobblestone-256 in workers, ${length / MIB} MiB each`, found, 'MB/s', (time) => length / time / 1e6);
}

function sizes() {
    console.log('\nSizes, brotli');
    const compressed = (path) => brotliCompressSync(readFileSync(path)).length;
    const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
    for (const [name, path] of [['the module', folder], ['the module, authenticated modes only', small]]) {
        console.log(`  ${name.padEnd(36)} ${(compressed(`${path}/lockstep_web_bg.wasm`) / 1000).toFixed(1).padStart(10)} kB`);
    }
    const total = scripts.reduce((sum, name) => sum + compressed(`${folder}/${name}`), 0);
    console.log(`  ${'JavaScript'.padEnd(36)} ${(total / 1000).toFixed(1).padStart(10)} kB`);
}

if (isMainThread) {
    console.log(`Node ${process.version}`);
    // Runs all parts, or the parts that are named as arguments.
    const parts = { sizes, ctr, messages, cobblestone, short, workers: () => workers(64 * MIB) };
    for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts)) await parts[name]();
} else {
    const data = noise(workerData.length);
    const keyFile = web.generateKeyFile();
    const run = () => drain(source(data).pipeThrough(web.encryptStream({ keyFile, backend: 'wasm' })));
    await run();
    parentPort.postMessage('ready');
    parentPort.on('message', async () => {
        await run();
        parentPort.postMessage('done');
    });
}
