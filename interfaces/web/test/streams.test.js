// Tests the two sides of a stream: slow readers, and streams that are cancelled or aborted.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BACKENDS, noise, passed, replaced, web } from './package.js';

const MIB = 1 << 20;
const keyFile = web.generateKeyFile();
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

test('results are joined for a reader that is slow in eight consecutive groups of 16 pieces', async () => {
    const plain = noise(1, 8 * MIB);
    const stream = web.encryptStream({ keyFile, backend: 'webcrypto' });
    const writing = new Blob([plain]).stream().pipeTo(stream.writable);
    const reader = stream.readable.getReader();
    const parts = [];
    let time = 0;
    const read = async () => {
        const { value } = await reader.read();
        if (value) parts.push(value);
        return value;
    };
    /** Reads groups of pieces, and needs some milliseconds for each piece. The mean of a slow group exceeds 0.1 ms. */
    const readGroups = async (count, needed) => {
        for (let piece = 0; piece < 16 * count; piece++) {
            assert((await read()).length <= 16400);
            time += needed;
        }
    };
    await replaced(performance, { now: () => time }, async () => {
        assert.equal((await read()).length, 56);
        for (let times = 0; times < 2; times++) {
            await readGroups(7, 0.11);
            await readGroups(1, 0.09);
        }
        await readGroups(8, 0.11);
        const { length } = await read();
        assert(length > 16400 && length <= 64 * 16400, `a piece of ${length} bytes`);
        // The reader is considered to be slow from now on.
        while (await read());
        for (const part of parts.slice(1 + 24 * 16, -1)) assert(part.length > 16400 && part.length <= 64 * 16400);
    });
    await writing;
    assert.deepEqual(await passed(Buffer.concat(parts), web.decryptStream({ keyFile })), Buffer.from(plain));
});

for (const backend of BACKENDS) {
    test(`a stream without a reader stops its writer: ${backend}`, async () => {
        const { writable, readable } = web.encryptStream({ keyFile, backend });
        const writer = writable.getWriter();
        let written = 0;
        const writing = (async () => {
            for (; written < 20 * MIB; written += MIB) await writer.write(noise(1, MIB));
        })();
        await pause(300);
        assert(written <= 4 * MIB, `${written} bytes were taken`);
        const reason = new Error('stopped');
        await Promise.all([assert.rejects(writing, reason), writer.abort(reason)]);
        await assert.rejects(readable.getReader().read(), reason);
    });

    test(`a reader that cancels stops the writer: ${backend}`, async () => {
        const sealed = await passed(noise(2, 3 * MIB), web.encryptStream({ keyFile }));
        for (const [stream, data] of [[web.encryptStream({ keyFile, backend }), noise(2, 3 * MIB)], [web.decryptStream({ keyFile, backend }), sealed]]) {
            const reason = new Error('no space');
            const consumer = new WritableStream({
                write() {
                    throw reason;
                },
            });
            const source = new ReadableStream({ pull: (controller) => controller.enqueue(data.slice(0, 100_000)) });
            const results = await Promise.allSettled([source.pipeTo(stream.writable), stream.readable.pipeTo(consumer)]);
            for (const result of results) assert.equal(result.reason, reason);
        }
    });

    test(`a source that fails or is aborted fails the reader: ${backend}`, async () => {
        const controller = new AbortController();
        const source = new ReadableStream({
            async pull(to) {
                await pause(1);
                to.enqueue(noise(3, 100_000));
            },
        });
        const stream = web.encryptStream({ keyFile, backend });
        const closed = [];
        const file = new WritableStream({ close: () => closed.push('close'), abort: () => closed.push('abort') });
        const piping = source.pipeThrough(stream, { signal: controller.signal }).pipeTo(file);
        setTimeout(() => controller.abort(), 50);
        await assert.rejects(piping, { name: 'AbortError' });
        // The file is not closed, so a `FileSystemWritableFileStream` discards the data.
        assert.deepEqual(closed, ['abort']);
    });
}

test('a stream whose reader cancels before the start frees its key', async () => {
    const { readable, writable } = web.encryptStream({ keyFile, backend: 'webcrypto' });
    await readable.cancel(new Error('early'));
    await assert.rejects(writable.getWriter().write(noise(1, 10)), /early/);
});
