// Tests that a long stream takes a bounded amount of memory, whatever its length.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BACKENDS, noise, web } from './package.js';

// `tools/web/memory.sh` passes a greater length.
const MIB = Number(process.env.LOCKSTEP_WEB_MIB ?? 192);
const LENGTH = MIB * 2 ** 20;
const MOST = 100 << 20;

for (const backend of BACKENDS) {
    test(`${MIB} MiB are encrypted and decrypted in ${MOST >> 20} MiB: ${backend}`, async (context) => {
        const piece = noise(1, 1 << 20);
        let [sent, received, most] = [0, 0, 0];
        const before = process.memoryUsage().rss;
        const source = new ReadableStream({
            pull(controller) {
                if (sent === LENGTH) return controller.close();
                sent += piece.length;
                controller.enqueue(piece);
                return undefined;
            },
        });
        const keyFile = web.generateKeyFile();
        const encrypted = source.pipeThrough(web.encryptStream({ keyFile, backend }));
        for await (const part of encrypted.pipeThrough(web.decryptStream({ keyFile, backend }))) {
            for (let at = 0; at < part.length; at += 4099) assert.equal(part[at], piece[(received + at) % piece.length]);
            received += part.length;
            most = Math.max(most, process.memoryUsage().rss);
        }
        assert.equal(received, LENGTH);
        context.diagnostic(`${(most - before) >> 20} MiB of memory`);
        assert(most - before < MOST, `${(most - before) >> 20} MiB`);
    });
}
