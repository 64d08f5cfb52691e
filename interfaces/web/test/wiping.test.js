// Tests that the copies of keys that the package makes in JavaScript are wiped.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { NEEDS_NODE_CRYPTO, noise, nodeCrypto, pass, passed, replaced, web } from './package.js';

test('keys that were given to WebCrypto are wiped, also if the import fails', async () => {
    const { subtle } = globalThis.crypto;
    const original = subtle.importKey.bind(subtle);
    const seen = [];
    let fails = false;
    const importKey = (format, raw, ...rest) => {
        seen.push(raw);
        assert(raw.some((byte) => byte !== 0));
        return fails ? Promise.reject(new Error('no import')) : original(format, raw, ...rest);
    };
    const options = { keyFile: web.generateKeyFile(), backend: 'webcrypto' };
    const text = options.keyFile.slice();
    await replaced(subtle, { importKey }, async () => {
        const sealed = await passed(noise(1, 50_000), web.encryptStream(options));
        await passed(sealed, web.decryptStream(options));
        await web.aead('GCM', noise(2, 32), options).sealAsync(noise(3, 12), null, noise(4, 20_000));
        fails = true;
        assert.match((await pass(noise(1, 10), web.encryptStream(options))).error.message, /no import/);
        await assert.rejects(web.openBlob(new Blob([sealed]), options), /no import/);
    });
    assert.equal(seen.length, 5);
    for (const raw of seen) assert(raw.every((byte) => byte === 0));
    // The package must not change the caller's own array.
    assert.deepEqual(options.keyFile, text);
});

test('keys that were given to node:crypto are wiped, also if it refuses them', NEEDS_NODE_CRYPTO, async () => {
    const options = { keyFile: web.generateKeyFile() };
    // The first file checks `node:crypto` with a key of zeros.
    const sealed = await passed(noise(1, 50_000), web.encryptStream(options));
    const original = nodeCrypto.createSecretKey;
    const seen = [];
    let fails = false;
    const createSecretKey = (raw) => {
        seen.push(raw);
        assert(raw.some((byte) => byte !== 0));
        if (fails) throw new Error('no key');
        return original(raw);
    };
    await replaced(nodeCrypto, { createSecretKey }, async () => {
        await passed(noise(1, 50_000), web.encryptStream(options));
        await passed(sealed, web.decryptStream(options));
        fails = true;
        assert.match((await pass(noise(1, 10), web.encryptStream(options))).error.message, /no key/);
        await assert.rejects(web.openBlob(new Blob([sealed]), options), /no key/);
    });
    assert.equal(seen.length, 4);
    for (const raw of seen) assert(raw.every((byte) => byte === 0));
});

test('a key file in a Buffer of Node is copied, and not wiped', async () => {
    const keyFile = Buffer.from(web.generateKeyFile());
    const text = Buffer.from(keyFile);
    const plain = noise(1, 50_000);
    const sealed = await passed(plain, web.encryptStream({ keyFile }));
    for (let file = 0; file < 2; file++) assert.deepEqual(await passed(sealed, web.decryptStream({ keyFile })), Buffer.from(plain));
    assert.deepEqual(keyFile, text);
    const stream = web.decryptStream({ keyFile });
    keyFile.fill(0);
    assert.deepEqual(await passed(sealed, stream), Buffer.from(plain));
});
