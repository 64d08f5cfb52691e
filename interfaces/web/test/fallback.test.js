// The backend `auto` where `node:crypto` is missing, differs or is slow. The package checks it once, so each case has a thread with its own package.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

import { NEEDS_NODE_CRYPTO, counted, noise, nodeCrypto, web } from './package.js';

const refuse = () => {
    throw new Error('not implemented');
};

/** Replaces a function of a cipher. */
const withMethod = (maker, name, method) => {
    const original = nodeCrypto[maker];
    nodeCrypto[maker] = (...args) => Object.assign(original(...args), { [name]: method });
};

/** Changes of `node:crypto`, and whether the package must use it. */
const CASES = {
    'node:crypto of Node': [() => undefined, true],
    'createCipheriv takes no ArrayBuffer, as in Deno and Bun': [() => {
        for (const name of ['createCipheriv', 'createDecipheriv']) {
            const original = nodeCrypto[name];
            nodeCrypto[name] = (cipher, key, iv, options) => (ArrayBuffer.isView(iv) ? original(cipher, key, iv, options) : refuse());
        }
    }, true],
    'createCipheriv fails': [() => (nodeCrypto.createCipheriv = refuse), false],
    'createSecretKey is missing': [() => (nodeCrypto.createSecretKey = undefined), false],
    'setAuthTag is missing': [() => withMethod('createDecipheriv', 'setAuthTag', undefined), false],
    'the tag is wrong': [() => withMethod('createCipheriv', 'getAuthTag', () => Buffer.alloc(16)), false],
    'the plaintext is wrong': [() => withMethod('createDecipheriv', 'update', (data) => Buffer.alloc(data.length, 1)), false],
    'a function of Buffer is missing': [() => (Buffer.allocUnsafeSlow = undefined), false],
    'the program is Deno': [() => Object.defineProperty(process, 'versions', { value: { ...process.versions, deno: '2.9.6' } }), false],
};

if (isMainThread) {
    for (const [name, [, usesNode]] of Object.entries(CASES)) {
        test(`${name}: ${usesNode ? 'node:crypto' : 'WebCrypto'} is used`, NEEDS_NODE_CRYPTO, async () => {
            const worker = new Worker(fileURLToPath(import.meta.url), { workerData: name });
            const { isEqual, calls } = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
            assert(isEqual);
            // Each direction is measured with four runs, of four or five chunks each.
            for (const count of calls) assert(usesNode ? count === 0 : count >= 16, `${count} calls of WebCrypto`);
        });
    }
} else {
    CASES[workerData][0]();
    const { subtle } = globalThis.crypto;
    const stubs = { encrypt: counted(subtle, 'encrypt'), decrypt: counted(subtle, 'decrypt') };
    Object.assign(subtle, stubs);
    const keyFile = web.generateKeyFile();
    const plain = noise(1, 1 << 20);
    const all = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());
    const sealed = await all(new Blob([plain]).stream().pipeThrough(web.encryptStream({ keyFile })));
    const opened = await all(new Blob([sealed]).stream().pipeThrough(web.decryptStream({ keyFile })));
    const isEqual = opened.length === plain.length && opened.every((byte, at) => byte === plain[at]);
    parentPort.postMessage({ isEqual, calls: [stubs.encrypt.calls, stubs.decrypt.calls] });
}
