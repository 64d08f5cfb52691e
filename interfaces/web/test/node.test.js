// The backend `auto` in Node: files use `node:crypto`, not WebCrypto.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { noise, pass, passed, web } from './package.js';

const keyFile = web.generateKeyFile();
const plain = noise(1, (5 << 20) + 1234);

test('files are processed without WebCrypto, and agree with it', async () => {
    const { subtle } = globalThis.crypto;
    const byWebCrypto = await passed(plain, web.encryptStream({ keyFile, backend: 'webcrypto' }));
    const originals = ['encrypt', 'decrypt', 'importKey'].map((name) => [name, subtle[name]]);
    for (const [name] of originals) subtle[name] = () => Promise.reject(new Error(`${name} was called`));
    const byNode = await passed(plain, web.encryptStream({ keyFile }));
    assert.deepEqual(await passed(byWebCrypto, web.decryptStream({ keyFile })), Buffer.from(plain));
    for (const [name, original] of originals) subtle[name] = original;
    assert.deepEqual(await passed(byNode, web.decryptStream({ keyFile, backend: 'webcrypto' })), Buffer.from(plain));
});

test('a damaged chunk is reported with its number, and none of the chunks from it on is released', async () => {
    const sealed = await passed(plain, web.encryptStream({ keyFile }));
    sealed[56 + 100 * 16400 + 77] ^= 1;
    for (const backend of ['auto', 'webcrypto']) {
        const { output, error } = await pass(sealed, web.decryptStream({ keyFile, backend }));
        assert.equal(error?.code, 'damaged');
        assert.match(error.message, /^chunk 100 /);
        assert(output.length <= 100 * 16384);
        assert.deepEqual(output, Buffer.from(plain.subarray(0, output.length)));
    }
});

test('timers run while data in memory are processed', async () => {
    let [ticks, isDone] = [0, false];
    const tick = () => void (isDone || ((ticks += 1), setTimeout(tick, 0)));
    // The first MiBs choose the backend.
    await passed(plain, web.encryptStream({ keyFile }), 1 << 20);
    tick();
    await passed(noise(2, 48 << 20), web.encryptStream({ keyFile }), 1 << 20);
    isDone = true;
    assert(ticks > 5, `${ticks} ticks`);
});

test('results have memory of their own, which can be transferred to another thread', async () => {
    const stream = new Blob([noise(3, 100)]).stream().pipeThrough(web.encryptStream({ keyFile }));
    for await (const piece of stream) {
        assert.equal(piece.constructor, Uint8Array);
        structuredClone(piece, { transfer: [piece.buffer] });
        assert.equal(piece.length, 0);
    }
});
