// Loads the module of WebAssembly, and converts the arguments and the errors of its functions.

import start, * as exported from './lockstep_web.js';

/** Makes an `Error` with a code. */
export function failure(code, message) {
    return Object.assign(new Error(message), { code });
}

// This module contains a function that returns a vector. A browser without SIMD128 refuses the module.
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

/**
 * The format of files, set by `init`: the bytes of a chunk, of its tag, of both, and of the header of a message; the bytes of the first line
 * of an envelope; and the number of chunks that a message has at most.
 */
export let CHUNK, TAG, SEALED, HEADER, FIRST_LINE, MAX_CHUNKS;

let loading;
let compiled;
let unusable = failure('not-loaded', 'Lockstep is not loaded: await init() first');

/** True in Node, which cannot fetch from files, and in programs with the interfaces of Node, such as Deno and Bun. */
export const isNode = typeof process === 'object' && Boolean(process.versions?.node);

async function compile(source) {
    if (source instanceof WebAssembly.Module) return source;
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
    const url = new URL(source ?? 'lockstep_web_bg.wasm', import.meta.url);
    if (isNode && url.protocol === 'file:') {
        const { readFile } = await import('node:fs/promises');
        return WebAssembly.compile(await readFile(url));
    }
    const response = await fetch(url);
    if (!response.ok) throw failure('not-loaded', `cannot load ${url}: the server answers ${response.status}`);
    // Compiling while loading requires that the server states the type of the file.
    if (response.headers.get('content-type')?.startsWith('application/wasm')) return WebAssembly.compileStreaming(response);
    return WebAssembly.compile(await response.arrayBuffer());
}

async function load(source) {
    if (typeof WebAssembly !== 'object' || !WebAssembly.validate(new Uint8Array(SIMD))) {
        throw failure('no-simd', 'this browser has no WebAssembly with SIMD: update it (Chrome 91, Firefox 89, Safari 16.4 or later)');
    }
    compiled = await compile(source);
    await start({ module_or_path: compiled });
    [CHUNK, TAG, SEALED, HEADER, FIRST_LINE, MAX_CHUNKS] = exported.layout();
    unusable = undefined;
}

/** Loads the module at the first call. After a failure, the next call tries again. */
export function init(source) {
    loading ??= load(source).catch((error) => {
        loading = undefined;
        throw error.code ? error : failure('not-loaded', `cannot load WebAssembly: ${error.message}`);
    });
    return loading;
}

/** Returns the compiled module, which a worker needs. */
export function compiledModule() {
    return compiled;
}

/** Calls a function of the module. After a trap, the memory of the module is in an unknown state, and every further call fails. */
export function call(run) {
    if (unusable) throw unusable;
    try {
        return run(exported);
    } catch (error) {
        if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
        unusable = failure('internal', `Lockstep has stopped (${error.message}), probably because memory is exhausted: reload the page`);
        unusable.cause = error;
        throw unusable;
    }
}

/** Returns an object of the module. Throws an error if the object was freed. */
export function live(object) {
    if (object === undefined) throw failure('argument', 'this object was freed: create it again');
    return object;
}

/**
 * Returns the bytes of an argument as a `Uint8Array` that shares the memory of the argument. For a `Buffer` of Node, the result is not this
 * `Buffer`, whose method `slice` makes no copy.
 */
export function bytes(value, name) {
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (!ArrayBuffer.isView(value)) throw failure('argument', `${name} must be a Uint8Array`);
    return value.constructor === Uint8Array ? value : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

/** Returns WebCrypto, or undefined if it is missing. Browsers offer it only in secure contexts. */
export function subtle() {
    return globalThis.crypto?.subtle;
}

/** Imports a key of AES-GCM into WebCrypto, and wipes its bytes. */
export async function importKey(raw, usages) {
    try {
        return await subtle().importKey('raw', raw, 'AES-GCM', false, usages);
    } finally {
        raw.fill(0);
    }
}

/** Returns the backend that an option and the browser permit: `auto`, `wasm` or `webcrypto`. */
export function backends(option = 'auto') {
    if (!['auto', 'wasm', 'webcrypto'].includes(option)) {
        throw failure('argument', 'the backend is "auto", "wasm" or "webcrypto"');
    }
    if (option === 'webcrypto' && !subtle()) {
        throw failure('no-webcrypto', 'WebCrypto is missing, as on pages without https: use the backend "auto" or "wasm"');
    }
    return option === 'auto' && !subtle() ? 'wasm' : option;
}
