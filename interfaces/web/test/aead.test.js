// Tests the authenticated modes with published vectors, Node's own implementation, batches, and wrong arguments.

import assert from 'node:assert/strict';
import { createCipheriv } from 'node:crypto';
import { test } from 'node:test';

import { BACKENDS, hex, noise, web } from './package.js';

const ascii = (text) => new TextEncoder().encode(text);

// Each vector has the mode, the key, the nonce, the associated data, the plaintext, and the sealed message.
const VECTORS = [
    // The GCM specification of McGrew and Viega, test cases 13 and 14.
    ['GCM', '00'.repeat(32), '00'.repeat(12), '', '', '530f8afbc74536b9a963b4f1c4cb738b'],
    ['GCM', '00'.repeat(32), '00'.repeat(12), '', '00'.repeat(16), 'cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919'],
    // RFC 8452, C.1.
    ['GCM-SIV', `01${'00'.repeat(15)}`, `03${'00'.repeat(11)}`, '', '', 'dc20e2d83f25705bb49e439eca56de25'],
    ['GCM-SIV', `01${'00'.repeat(15)}`, `03${'00'.repeat(11)}`, '', '0100000000000000', 'b5d839330ac7b786578782fff6013b815b287c22493a364c'],
    // RFC 7253, appendix A.
    ['OCB3', '000102030405060708090a0b0c0d0e0f', 'bbaa99887766554433221100', '', '', '785407bfffc8ad9edcc5520ac9111ee6'],
    [
        'OCB3', '000102030405060708090a0b0c0d0e0f', 'bbaa99887766554433221101', '0001020304050607', '0001020304050607',
        '6820b3657b6f615a5725bda0d3b4eb3a257c9af1f8f03009',
    ],
    // RFC 5297, A.1 and A.2.
    [
        'SIV', 'fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff', '', '101112131415161718191a1b1c1d1e1f2021222324252627',
        '112233445566778899aabbccddee', '85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c',
    ],
    [
        'SIV', '7f7e7d7c7b7a79787776757473727170404142434445464748494a4b4c4d4e4f', '09f911029d74e35bd84156c5635688c0',
        ['00112233445566778899aabbccddeeffdeaddadadeaddadaffeeddccbbaa99887766554433221100', '102030405060708090a0'],
        '7468697320697320736f6d6520706c61696e7465787420746f20656e6372797074207573696e67205349562d414553',
        '7bdb6e3b432667eb06f4d14bff2fbd0fcb900f2fddbe404326601965c889bf17dba77ceb094fa663b7a3f748ba8af829ea64ad544a272e9c485b62a3fd5c0d',
    ],
    // C2SP, XAES-256-GCM.
    ['XAES-256-GCM', '01'.repeat(32), ascii('ABCDEFGHIJKLMNOPQRSTUVWX'), '', ascii('XAES-256-GCM'), 'ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271'],
    // "The EAX Mode of Operation", appendix.
    ['EAX', '91945d3f4dcbee0bf45ef52255f095a4', 'becaf043b0a23d843194ba972c66debd', 'fa3bfd4806eb53fa', 'f7fb', '19dd5c4c9331049d0bdab0277408f67967e5'],
];

const toBytes = (value) => (typeof value === 'string' ? hex(value) : value);
const flipped = (bytes, at) => bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));

for (const [index, [name, ...texts]] of VECTORS.entries()) {
    test(`${name}: vector ${index}`, () => {
        const [key, nonce, , plaintext, sealed] = texts.map((text) => (Array.isArray(text) ? text : toBytes(text)));
        const aad = Array.isArray(texts[2]) ? texts[2].map(hex) : toBytes(texts[2]);
        const mode = web.aead(name, key);
        // In RFC 5297, A.1 has one string of associated data and no nonce.
        assert.deepEqual(mode.seal(nonce, aad, plaintext), sealed);
        assert.deepEqual(mode.open(nonce, aad, sealed), plaintext);
        for (let at = 0; at < sealed.length; at++) {
            assert.throws(() => mode.open(nonce, aad, flipped(sealed, at)), { code: 'not-authentic' });
        }
        mode.free();
        assert.throws(() => mode.seal(nonce, aad, plaintext), { code: 'argument', message: /freed/ });
        assert.throws(() => mode.open(nonce, aad, sealed), { code: 'argument' });
        assert.throws(() => mode.sealBatch([]), { code: 'argument' });
        mode.free();
    });
}

test('GCM, CCM and OCB3 agree with Node, for all lengths of keys', () => {
    for (const [name, cipher] of [['GCM', 'gcm'], ['CCM', 'ccm'], ['OCB3', 'ocb']]) {
        for (const bytes of [16, 24, 32]) {
            const key = noise(bytes, bytes);
            const mode = web.aead(name, key);
            for (const length of [0, 1, 15, 16, 17, 127, 128, 129, 500, 513, 4096, 16384, 40001]) {
                const [nonce, aad, plaintext] = [noise(length, 12), noise(length + 1, length % 50), noise(length + 2, length)];
                const node = createCipheriv(`aes-${8 * bytes}-${cipher}`, key, nonce, { authTagLength: 16 });
                node.setAAD(aad, { plaintextLength: length });
                const expected = Buffer.concat([node.update(plaintext), node.final(), node.getAuthTag()]);
                const sealed = mode.seal(nonce, aad, plaintext);
                assert.deepEqual(Buffer.from(sealed), expected, `${name}, ${bytes} bytes, ${length}`);
                assert.deepEqual(mode.open(nonce, aad, sealed), plaintext);
            }
        }
    }
});

test('the table has all modes, and each of its lengths works', () => {
    const table = web.aeads();
    assert.deepEqual(table.map((row) => row.name), ['GCM', 'GCM-SIV', 'OCB3', 'SIV', 'CCM', 'XAES-256-GCM', 'EAX']);
    const ends = (ranges, most) => ranges.flatMap(([first, last]) => [first, Math.min(last, most)]);
    for (const row of table) {
        for (const keyLength of row.keyLengths) {
            for (const tagLength of ends(row.tagLengths, 16)) {
                const mode = web.aead(row.name, noise(1, keyLength), { tagLength });
                for (const nonceLength of ends(row.nonceLengths, 40)) {
                    const sealed = mode.seal(noise(2, nonceLength), undefined, hex('0102'));
                    assert.equal(sealed.length, 2 + tagLength);
                    assert.deepEqual(mode.open(noise(2, nonceLength), null, sealed), hex('0102'));
                }
            }
        }
        assert.throws(() => web.aead(row.name, noise(1, 15)), { code: 'argument' });
    }
});

test('batches agree with single messages, and report each forgery', () => {
    for (const { name, keyLengths, nonceLengths } of web.aeads()) {
        const mode = web.aead(name, noise(3, keyLengths[0]));
        const nonceLength = nonceLengths[0][0] || 12;
        const messages = Array.from({ length: 40 }, (_, index) => ({
            nonce: noise(index, nonceLength),
            aad: noise(index, index % 20),
            plaintext: noise(index, (index * index * 7) % 900),
        }));
        const sealed = mode.sealBatch(messages);
        messages.forEach(({ nonce, aad, plaintext }, index) => assert.deepEqual(sealed[index], mode.seal(nonce, aad, plaintext)));
        const toOpen = messages.map((message, index) => ({ ...message, sealed: index % 7 === 3 ? flipped(sealed[index], 0) : sealed[index] }));
        const opened = mode.openBatch(toOpen);
        messages.forEach(({ plaintext }, index) => assert.deepEqual(opened[index], index % 7 === 3 ? null : plaintext, name));
        assert.deepEqual(mode.sealBatch([]), []);
        // A message that is shorter than a tag is treated as a forgery. The other messages of its batch are opened.
        const short = { nonce: noise(1, nonceLength), sealed: noise(1, 15) };
        assert.deepEqual(mode.openBatch([short, toOpen[1], short, toOpen[2]]), [null, messages[1].plaintext, null, messages[2].plaintext]);
        assert.throws(() => mode.sealBatch([{ nonce: noise(1, nonceLength) }]), { code: 'argument' });
        assert.throws(() => mode.openBatch(undefined), { code: 'argument' });
    }
});

test('the asynchronous calls agree with the others on each backend', async () => {
    for (const backend of BACKENDS) {
        for (const bytes of [16, 24, 32]) {
            const mode = web.aead('GCM', noise(4, bytes), { backend });
            for (const length of [0, 100, 24575, 24576, 100_000]) {
                const [nonce, aad, plaintext] = [noise(5, 12), noise(6, 30), noise(length, length)];
                const sealed = await mode.sealAsync(nonce, aad, plaintext);
                assert.deepEqual(sealed, mode.seal(nonce, aad, plaintext));
                assert.deepEqual(await mode.openAsync(nonce, aad, sealed), plaintext);
                await assert.rejects(mode.openAsync(nonce, aad, flipped(sealed, length)), { code: 'not-authentic' });
                await assert.rejects(mode.openAsync(nonce, noise(7, 30), sealed), { code: 'not-authentic' });
            }
        }
    }
});

test('arguments of the asynchronous calls may be changed when the call has returned', async () => {
    for (const backend of BACKENDS) {
        const mode = web.aead('GCM', noise(4, 32), { backend });
        const expected = [0, 1, 2].map((index) => mode.seal(noise(5 + index, 12), noise(6 + index, 30), noise(7 + index, 40_000)));
        // In the first round, the calls wait for the key of WebCrypto.
        for (let round = 0; round < 2; round++) {
            const [nonce, aad, data] = [noise(5, 12), noise(6, 30), noise(7, 40_000)];
            const sealing = [0, 1, 2].map((index) => {
                [nonce, aad, data].forEach((array, which) => array.set(noise(5 + which + index, array.length)));
                const promise = mode.sealAsync(nonce, aad, data);
                [nonce, aad, data].forEach((array) => array.fill(0));
                return promise;
            });
            assert.deepEqual(await Promise.all(sealing), expected, backend);
        }
        const other = web.aead('GCM', noise(4, 32), { backend });
        for (let round = 0; round < 2; round++) {
            const [nonce, aad, data] = [noise(5, 12), noise(6, 30), expected[0].slice()];
            const promise = other.openAsync(nonce, aad, data);
            [nonce, aad, data].forEach((array) => array.fill(0));
            assert.deepEqual(await promise, noise(7, 40_000), backend);
        }
        other.free();
        await assert.rejects(other.sealAsync(noise(5, 12), null, noise(7, 40_000)), { code: 'argument' });
    }
});

test('wrong arguments are errors with a code', () => {
    // Wrong arguments must not stop the module.
    for (const name of [5, undefined, null, {}]) assert.throws(() => web.aead(name, noise(1, 16)), { code: 'argument' });
    for (const tagLength of ['16', -1, 1.5, 2 ** 32 + 16, null, NaN]) {
        assert.throws(() => web.aead('GCM', noise(1, 16), { tagLength }), { code: 'argument' });
    }
    assert.throws(() => web.aead('ROT13', noise(1, 16)), { code: 'argument', message: /use one of GCM, / });
    assert.throws(() => web.aead('GCM', 'secret'), { code: 'argument' });
    assert.throws(() => web.aead('GCM', noise(1, 16), { tagLength: 3 }), { code: 'argument' });
    assert.throws(() => web.aead('GCM', noise(1, 16), { backend: 'abacus' }), { code: 'argument' });
    const mode = web.aead('GCM-SIV', noise(1, 16));
    assert.throws(() => mode.seal(noise(1, 11), null, noise(1, 5)), { code: 'argument', message: /12 bytes, not of 11/ });
    assert.throws(() => mode.seal(noise(1, 12), [noise(1, 1), noise(1, 1)], noise(1, 5)), { code: 'argument' });
    assert.throws(() => mode.open(noise(1, 12), null, noise(1, 15)), { code: 'not-authentic' });
    assert.throws(() => mode.seal(noise(1, 12), null, 'text'), { code: 'argument' });
});
