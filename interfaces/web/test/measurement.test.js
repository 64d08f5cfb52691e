// The backend `auto` must measure both backends and select the faster one, whatever the length of the pieces. Each test file runs in its
// own process, so the measurement of this file is the first one of its process.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { noise, passed, web } from './package.js';

const { subtle } = globalThis.crypto;
// Without this function, the package uses WebCrypto as in a browser.
process.getBuiltinModule = undefined;

/** Makes a function of WebCrypto slower than WebAssembly for runs of all lengths, and counts its calls. */
function slowed(name) {
    const count = { calls: 0 };
    const original = subtle[name].bind(subtle);
    subtle[name] = async (...args) => {
        count.calls += 1;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return original(...args);
    };
    return count;
}

test('the measurement ends, in both directions', async () => {
    const keyFile = web.generateKeyFile();
    const [encryptions, decryptions] = [slowed('encrypt'), slowed('decrypt')];
    const plain = noise(1, 1 << 20);
    for (const piece of [65536, 1000]) {
        const sealed = await passed(plain, web.encryptStream({ keyFile }), piece);
        assert.deepEqual(await passed(sealed, web.decryptStream({ keyFile }), piece), Buffer.from(plain));
        // Each direction has four runs by WebCrypto, of four or five chunks each.
        assert(encryptions.calls >= 16 && encryptions.calls <= 20, `${encryptions.calls} encryptions, pieces of ${piece} bytes`);
        assert(decryptions.calls >= 16 && decryptions.calls <= 20, `${decryptions.calls} decryptions, pieces of ${piece} bytes`);
    }
});
