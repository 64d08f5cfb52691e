// Loads the package under test, and contains functions that several tests use.

import { pathToFileURL } from 'node:url';

const folder = process.env.LOCKSTEP_WEB;
if (!folder) throw new Error('LOCKSTEP_WEB is the folder of the package: run `make web-test`');

export const web = await import(pathToFileURL(`${folder}/lockstep.js`));
await web.init();

/** The classes that are compiled for WebAssembly. */
export const compiled = await import(pathToFileURL(`${folder}/lockstep_web.js`));

/** `node:crypto`, whose functions can be replaced. Undefined in versions of Node in which the package cannot use it. */
export const nodeCrypto = process.getBuiltinModule?.('node:crypto');

/** An option of tests that need `nodeCrypto`. */
export const NEEDS_NODE_CRYPTO = { skip: nodeCrypto ? false : 'this version of Node has no process.getBuiltinModule' };

export const BACKENDS = ['wasm', 'webcrypto', 'auto'];

export const hex = (text) => Uint8Array.from(Buffer.from(text, 'hex'));

/** Returns bytes that depend only on the seed and the length. */
export function noise(seed, length) {
    const bytes = new Uint8Array(length);
    let state = (seed * 2654435761 + 1) >>> 0;
    for (let i = 0; i < length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        bytes[i] = state >>> 24;
    }
    return bytes;
}

/** Passes bytes through a stream, in pieces. Returns the output, and the error if the stream fails. */
export async function pass(bytes, transform, piece = 65536) {
    let at = 0;
    const source = new ReadableStream({
        pull(controller) {
            if (at >= bytes.length) return controller.close();
            controller.enqueue(bytes.slice(at, (at += piece)));
            return undefined;
        },
    });
    const parts = [];
    try {
        for await (const part of source.pipeThrough(transform)) parts.push(part);
        return { output: Buffer.concat(parts) };
    } catch (error) {
        return { output: Buffer.concat(parts), error };
    }
}

/** Returns the output of a stream that must not fail. */
export async function passed(bytes, transform, piece) {
    const { output, error } = await pass(bytes, transform, piece);
    if (error) throw error;
    return output;
}

/** Returns the result of `work`, during which functions of an object are replaced. */
export async function replaced(object, functions, work) {
    const originals = Object.keys(functions).map((name) => [name, object[name]]);
    try {
        Object.assign(object, functions);
        return await work();
    } finally {
        Object.assign(object, Object.fromEntries(originals));
    }
}

/** Makes a function that calls the function `name` of an object and counts the calls. */
export function counted(object, name) {
    const original = object[name].bind(object);
    const count = (...args) => {
        count.calls += 1;
        return original(...args);
    };
    count.calls = 0;
    return count;
}
