// The backend `auto` in Node: files use `node:crypto`, not WebCrypto. Each test file runs in its own process, so the measurement of the
// backends in the first test is the first one of its process.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { NEEDS_NODE_CRYPTO, compiled, counted, noise, nodeCrypto, pass, passed, replaced, web } from './package.js';

const MIB = 1 << 20;
const [CHUNK, SEALED, HEADER] = [16384, 16400, 56];
const keyFile = web.generateKeyFile();
const plain = noise(1, 5 * MIB + 1234);

/** Counts the turns of the event loop until `isDone` is set. */
function countTurns(each = () => undefined) {
    const count = { turns: 0, isDone: false };
    const turn = () => {
        if (count.isDone) return;
        count.turns += 1;
        each();
        setImmediate(turn);
    };
    setImmediate(turn);
    return count;
}

test('the work of other functions between two runs does not count as the time of a backend', NEEDS_NODE_CRYPTO, async () => {
    // A turn of the event loop takes 1000 ms, a run of WebAssembly 1 ms, and nothing else takes time.
    let time = 0;
    const { seal, open } = compiled.Chunks.prototype;
    const slow = (original) => function (...args) {
        time += 1;
        return original.apply(this, args);
    };
    const count = countTurns(() => (time += 1000));
    const [encryptions, decryptions] = [counted(nodeCrypto, 'createCipheriv'), counted(nodeCrypto, 'createDecipheriv')];
    const work = async () => passed(await passed(plain, web.encryptStream({ keyFile })), web.decryptStream({ keyFile }));
    const withClock = () => replaced(performance, { now: () => time }, work);
    const withWasm = () => replaced(compiled.Chunks.prototype, { seal: slow(seal), open: slow(open) }, withClock);
    try {
        const opened = await replaced(nodeCrypto, { createCipheriv: encryptions, createDecipheriv: decryptions }, withWasm);
        assert.deepEqual(opened, Buffer.from(plain));
    } finally {
        count.isDone = true;
    }
    // Four runs of each direction use WebAssembly: 16 chunks, or a little more. The message has 321 chunks.
    assert(encryptions.calls > 280 && decryptions.calls > 280, `${encryptions.calls} and ${decryptions.calls} chunks by node:crypto`);
});

test('files are processed without WebCrypto, and agree with it', NEEDS_NODE_CRYPTO, async () => {
    const byWebCrypto = await passed(plain, web.encryptStream({ keyFile, backend: 'webcrypto' }));
    const refuse = (name) => () => Promise.reject(new Error(`${name} was called`));
    const stubs = Object.fromEntries(['encrypt', 'decrypt', 'importKey'].map((name) => [name, refuse(name)]));
    const [byNode, opened] = await replaced(globalThis.crypto.subtle, stubs, async () => {
        return [await passed(plain, web.encryptStream({ keyFile })), await passed(byWebCrypto, web.decryptStream({ keyFile }))];
    });
    assert.deepEqual(opened, Buffer.from(plain));
    assert.deepEqual(await passed(byNode, web.decryptStream({ keyFile, backend: 'webcrypto' })), Buffer.from(plain));
});

test('each chunk is processed by a call of node:crypto', NEEDS_NODE_CRYPTO, async () => {
    const stubs = { createCipheriv: counted(nodeCrypto, 'createCipheriv'), createDecipheriv: counted(nodeCrypto, 'createDecipheriv') };
    await replaced(nodeCrypto, stubs, async () => passed(await passed(plain, web.encryptStream({ keyFile })), web.decryptStream({ keyFile })));
    assert.deepEqual([stubs.createCipheriv.calls, stubs.createDecipheriv.calls], [321, 321]);
});

test('a damaged chunk is reported with its number, and none of the chunks from it on is released', async () => {
    const sealed = await passed(plain, web.encryptStream({ keyFile }));
    sealed[HEADER + 100 * SEALED + 77] ^= 1;
    for (const backend of ['auto', 'webcrypto']) {
        const { output, error } = await pass(sealed, web.decryptStream({ keyFile, backend }));
        assert.equal(error?.code, 'damaged');
        assert.match(error.message, /^chunk 100 /);
        assert(output.length <= 100 * CHUNK);
        assert.deepEqual(output, Buffer.from(plain.subarray(0, output.length)));
    }
});

test('the plaintext of a damaged chunk is cleared', NEEDS_NODE_CRYPTO, async () => {
    const sealed = await passed(noise(4, 5 * CHUNK), web.encryptStream({ keyFile }));
    sealed[HEADER + 3 * SEALED + 77] ^= 1;
    const results = [];
    const createDecipheriv = withUpdate((result) => {
        assert(result.some((byte) => byte !== 0));
        results.push(result);
        return result;
    });
    const { error } = await replaced(nodeCrypto, { createDecipheriv }, () => pass(sealed, web.decryptStream({ keyFile }), 4 * MIB));
    assert.equal(error?.code, 'damaged');
    assert.equal(results.length, 4);
    assert(results[3].every((byte) => byte === 0));
});

/** Makes a `createDecipheriv` with ciphers whose function `update` returns the result of `change`. */
function withUpdate(change) {
    const original = nodeCrypto.createDecipheriv;
    return (...args) => {
        const decipher = original(...args);
        const update = decipher.update.bind(decipher);
        return Object.assign(decipher, { update: (data) => change(update(data)) });
    };
}

test('other work of the thread is done after each run of data in memory', NEEDS_NODE_CRYPTO, async () => {
    const count = countTurns();
    try {
        await passed(noise(2, 12 * MIB), web.encryptStream({ keyFile }), MIB);
    } finally {
        count.isDone = true;
    }
    assert(count.turns >= 12, `${count.turns} turns of the event loop for 12 runs`);
});

test('a piece has at most 64 chunks, whatever the lengths of the pieces of the source', NEEDS_NODE_CRYPTO, async () => {
    const sealed = await passed(plain, web.encryptStream({ keyFile }));
    for (const [input, stream, most] of [[plain, web.encryptStream({ keyFile }), 64 * SEALED], [sealed, web.decryptStream({ keyFile }), MIB]]) {
        const source = new ReadableStream({
            start(controller) {
                for (let at = 0; at < input.length; ) controller.enqueue(input.subarray(at, (at += 2 * MIB + 1000)));
                controller.close();
            },
        });
        const lengths = [];
        for await (const { length } of source.pipeThrough(stream)) lengths.push(length);
        assert.equal(Math.max(...lengths), most);
    }
});

test('results have memory of their own, which can be transferred to another thread', NEEDS_NODE_CRYPTO, async () => {
    const small = noise(3, 100);
    const sealed = await passed(small, web.encryptStream({ keyFile }));
    // Other programs could return a part of a larger memory.
    const createDecipheriv = withUpdate((result) => Buffer.concat([Buffer.alloc(50), result, Buffer.alloc(50)]).subarray(50, -50));
    const decrypt = () => transferred(new Blob([sealed]).stream().pipeThrough(web.decryptStream({ keyFile })));
    assert.equal((await transferred(new Blob([small]).stream().pipeThrough(web.encryptStream({ keyFile })))).length, sealed.length);
    assert.deepEqual(await decrypt(), Buffer.from(small));
    assert.deepEqual(await replaced(nodeCrypto, { createDecipheriv }, decrypt), Buffer.from(small));
});

/** Transfers each piece of a stream. Returns all bytes. */
async function transferred(stream) {
    const pieces = [];
    for await (const piece of stream) {
        assert.equal(piece.constructor, Uint8Array);
        assert.equal(piece.buffer.byteLength, piece.length);
        pieces.push(structuredClone(piece, { transfer: [piece.buffer] }));
        assert.equal(piece.length, 0);
    }
    return Buffer.concat(pieces);
}
