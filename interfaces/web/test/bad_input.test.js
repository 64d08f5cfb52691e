// Tests damaged files, other keys and wrong options. No part of a chunk is released unless the chunk is authentic.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BACKENDS, noise, pass, passed, web } from './package.js';

const CHUNK = 16384;
const SEALED = CHUNK + 16;
const keyFile = web.generateKeyFile();
const { identity, recipient } = web.generateIdentity();
/** The recipient of 32 zero bytes. This is a point of low order, so encryption to it must be refused. */
const LOW_ORDER = 'age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z';
const plain = noise(1, 5 * CHUNK + 100);
const bare = await passed(plain, web.encryptStream({ keyFile }));
const enveloped = await passed(plain, web.encryptStream({ recipients: [recipient] }));

/** Decrypts damaged data: the output must be whole chunks of the plaintext, and the stream must fail. */
async function refused(data, options, codes, label) {
    for (const backend of BACKENDS) {
        const { output, error } = await pass(data, web.decryptStream({ ...options, backend }), 20_000);
        assert(error, `${label}, ${backend}: no error`);
        assert(codes.includes(error.code), `${label}, ${backend}: ${error.code}, ${error.message}`);
        assert(error instanceof Error && error.message.length > 20);
        assert.equal(output.length % CHUNK, 0, `${label}: ${output.length} bytes were released`);
        assert.deepEqual(output, Buffer.from(plain.subarray(0, output.length)), label);
        const opening = web.openBlob(new Blob([data]), { ...options, backend }).then((file) => file.read(0, file.size));
        await assert.rejects(opening, (error) => codes.includes(error.code), `${label}, ${backend}: as a Blob`);
    }
}

const changed = (data, at) => {
    const copy = Buffer.from(data);
    copy[at] ^= 4;
    return copy;
};

test('a file that was cut off anywhere', async () => {
    const codes = ['truncated', 'damaged', 'other-format'];
    for (const length of [0, 1, 16, 55, 56, 57, 72, 100, 56 + SEALED - 1, 56 + SEALED, 56 + SEALED + 15, 56 + 3 * SEALED, bare.length - 1]) {
        await refused(bare.subarray(0, length), { keyFile }, codes, `${length} bytes`);
    }
});

test('the error of a truncation has the length of the file', async () => {
    // The last chunk consists of 100 bytes and a tag of 16 bytes. After the cut, 6 of these bytes remain.
    const cut = enveloped.subarray(0, enveloped.length - 110);
    const expected = { code: 'truncated', message: new RegExp(`after ${cut.length} bytes`) };
    for (const backend of BACKENDS) {
        await assert.rejects(passed(cut, web.decryptStream({ identities: [identity], backend })), expected);
        await assert.rejects(web.openBlob(new Blob([cut]), { identities: [identity], backend }), expected);
    }
});

test('the options of a stream may be changed when it was created', async () => {
    for (const backend of BACKENDS) {
        const [key, identities] = [keyFile.slice(), [identity]];
        const options = [{ keyFile: key, backend }, { identities, backend }];
        const streams = [web.encryptStream(options[0]), ...options.map(web.decryptStream)];
        key.fill(0);
        identities.length = 0;
        options.forEach((option) => (option.backend = 'none'));
        const sealed = await passed(plain, streams[0]);
        assert.deepEqual(await passed(sealed, streams[1]), Buffer.from(plain));
        assert.deepEqual(await passed(enveloped, streams[2]), Buffer.from(plain));
    }
});

test('a file that was freed is an error', async () => {
    const file = await web.openBlob(new Blob([bare]), { keyFile });
    const reading = file.read(0, 10);
    file.free();
    await assert.rejects(reading, { code: 'argument' });
    await assert.rejects(file.read(0, 10), { code: 'argument', message: /freed/ });
    file.free();
});

test('an envelope that was cut off anywhere', async () => {
    const codes = ['truncated', 'damaged', 'envelope', 'needs-key-file'];
    const length = enveloped.length - bare.length;
    for (const end of [0, 5, 17, 18, 20, 21, 40, length - 1, length, length + 30, length + 56, length + 100, length + 56 + SEALED]) {
        await refused(enveloped.subarray(0, end), { identities: [identity] }, codes, `${end} bytes`);
    }
});

test('bytes that were changed', async () => {
    for (const at of [0, 24, 55, 56, 56 + CHUNK, 56 + SEALED - 1, 56 + 2 * SEALED, bare.length - 1]) {
        await refused(changed(bare, at), { keyFile }, ['wrong-key', 'damaged', 'other-format'], `byte ${at}`);
    }
    for (const at of [0, 16, 17, 20, 30, 60, 150, enveloped.length - bare.length + 3]) {
        const codes = ['wrong-key', 'damaged', 'envelope', 'truncated', 'needs-key-file'];
        await refused(changed(enveloped, at), { identities: [identity] }, codes, `byte ${at}`);
    }
});

test('chunks in another order, twice, of another file, or after the end', async () => {
    const chunk = (data, k) => data.subarray(56 + k * SEALED, 56 + (k + 1) * SEALED);
    const all = (data) => Array.from({ length: 6 }, (_, k) => chunk(data, k));
    const file = (chunks) => Buffer.concat([bare.subarray(0, 56), ...chunks]);
    const [c0, c1, c2, c3, c4, c5] = all(bare);
    const other = all(await passed(plain, web.encryptStream({ keyFile })));
    for (const [label, chunks] of Object.entries({
        swapped: [c0, c2, c1, c3, c4, c5],
        twice: [c0, c1, c1, c2, c3, c4, c5],
        missing: [c0, c1, c3, c4, c5],
        foreign: [c0, other[1], c2, c3, c4, c5],
        longer: [c0, c1, c2, c3, c4, c5, c5],
        empty: [c0, c1, c2, c3, c4, c5.subarray(0, 0)],
    })) {
        await refused(file(chunks), { keyFile }, ['damaged', 'truncated'], label);
    }
});

test('other keys', async () => {
    await refused(bare, { keyFile: web.generateKeyFile() }, ['wrong-key'], 'key file');
    await refused(enveloped, { identities: [web.generateIdentity().identity] }, ['wrong-key'], 'identity');
    await refused(bare, { identities: [identity] }, ['needs-key-file'], 'an identity for a key file');
    await refused(enveloped, { keyFile }, ['needs-identity'], 'a key file for an identity');
    await refused(enveloped, { passphrase: 'x' }, ['needs-identity'], 'a passphrase for an identity');
    await refused(Buffer.from('Dear Sir or Madam, '.repeat(20)), { keyFile }, ['other-format'], 'text');
    const byPassphrase = await passed(plain, web.encryptStream({ passphrase: 'right' }));
    const { error } = await pass(byPassphrase, web.decryptStream({ passphrase: 'wrong' }));
    assert.equal(error.code, 'wrong-key');
    await refused(byPassphrase, { identities: [identity] }, ['needs-passphrase'], 'an identity for a passphrase');
});

test('wrong options', async () => {
    const fails = async (stream, code) => assert.equal((await pass(noise(1, 10), stream)).error?.code, code);
    await fails(web.encryptStream({}), 'argument');
    await fails(web.encryptStream(undefined), 'argument');
    await fails(web.encryptStream({ keyFile, passphrase: 'x' }), 'argument');
    for (const passphrase of ['', null, 12345, {}, ['x'], new Uint8Array(5)]) {
        await fails(web.encryptStream({ passphrase }), 'argument');
        assert.equal((await pass(enveloped, web.decryptStream({ identities: [identity], passphrase }))).error.code, 'argument');
    }
    await fails(web.encryptStream({ recipients: recipient }), 'argument');
    await fails(web.encryptStream({ recipients: [5] }), 'argument');
    await fails(web.encryptStream({ keyFile: null }), 'argument');
    await fails(web.encryptStream({ recipients: [] }), 'recipient');
    await fails(web.encryptStream({ recipients: [identity] }), 'recipient');
    await fails(web.encryptStream({ recipients: [LOW_ORDER] }), 'recipient');
    await fails(web.encryptStream({ keyFile: noise(1, 40) }), 'key-file');
    await fails(web.encryptStream({ keyFile, backend: 'gpu' }), 'argument');
    assert.equal((await pass(bare, web.decryptStream({}))).error.code, 'argument');
    assert.equal((await pass(enveloped, web.decryptStream({ identities: [recipient] }))).error.code, 'identity');
    await assert.rejects(passed(['text'], web.encryptStream({ keyFile })), { code: 'argument' });
});

test('no error contains a secret', async () => {
    for (const options of [{ recipients: [identity] }, { keyFile: new TextEncoder().encode(`lockstep-key-256 ${'7'.repeat(63)}`) }]) {
        const { error } = await pass(noise(1, 10), web.encryptStream(options));
        assert(!error.message.includes(identity) && !error.message.includes('7777'));
    }
});
