// Tests the two sides of a stream: slow readers, and streams that are cancelled or aborted.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BACKENDS, noise, passed, web } from './package.js';

const MIB = 1 << 20;
const keyFile = web.generateKeyFile();
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

test('a reader that is slow gets large pieces', async () => {
    const plain = noise(1, 6 * MIB);
    const stream = web.encryptStream({ keyFile, backend: 'webcrypto' });
    const writing = new Blob([plain]).stream().pipeTo(stream.writable);
    const parts = [];
    for await (const part of stream.readable) {
        parts.push(part);
        await pause(part.length < 100_000 ? 2 : 20);
    }
    await writing;
    const largest = Math.max(...parts.map((part) => part.length));
    assert(largest > MIB / 2 && largest < 1.1 * MIB, `the largest piece has ${largest} bytes`);
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
