// Tests keys for several files, which share an envelope.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { noise, passed, web } from './package.js';

const plain = noise(3, 20_000);
const { identity, recipient } = web.generateIdentity();
const keyFile = web.generateKeyFile();
const envelope = (file) => Buffer.from(file.subarray(0, 21 + Buffer.from(file).readUInt32LE(17))).toString('hex');

test('files of the same keys share an envelope, and differ', async () => {
    const keys = await web.encryptionKeys({ recipients: [recipient] });
    const files = [await passed(plain, web.encryptStream({ keys })), await passed(plain, web.encryptStream({ keys }))];
    keys.free();
    assert.equal(envelope(files[0]), envelope(files[1]));
    assert.notDeepEqual(files[0], files[1]);
    for (const file of files) assert.deepEqual(await passed(file, web.decryptStream({ identities: [identity] })), Buffer.from(plain));
});

test('a passphrase is processed once for files that share an envelope', async () => {
    const making = await web.encryptionKeys({ passphrase: 'right' });
    const files = [];
    for (let i = 0; i < 3; i++) files.push(await passed(plain, web.encryptStream({ keys: making })));
    const keys = web.decryptionKeys({ passphrase: 'right', keyFile });
    assert.deepEqual(await passed(files[0], web.decryptStream({ keys })), Buffer.from(plain));
    const { normalize } = String.prototype;
    // A further derivation would fail here.
    String.prototype.normalize = () => assert.fail('the passphrase was used again');
    try {
        for (const file of files) assert.deepEqual(await passed(file, web.decryptStream({ keys })), Buffer.from(plain));
    } finally {
        String.prototype.normalize = normalize;
    }
    // A file with another envelope.
    assert.deepEqual(await passed(await passed(plain, web.encryptStream({ keyFile })), web.decryptStream({ keys })), Buffer.from(plain));
    const file = await web.openBlob(new Blob([files[1]]), { keys });
    assert.deepEqual(await file.read(5, 100), plain.slice(5, 105));
    keys.free();
    await assert.rejects(passed(files[0], web.decryptStream({ keys })), { code: 'argument' });
});

test('an envelope whose opening has failed for another reason than a wrong key is opened again', async () => {
    const file = await passed(plain, web.encryptStream({ passphrase: 'right' }));
    const keys = web.decryptionKeys({ passphrase: 'right' });
    const { normalize } = String.prototype;
    String.prototype.normalize = () => assert.fail('a temporary failure');
    try {
        await assert.rejects(passed(file, web.decryptStream({ keys })), /a temporary failure/);
    } finally {
        String.prototype.normalize = normalize;
    }
    assert.deepEqual(await passed(file, web.decryptStream({ keys })), Buffer.from(plain));
    keys.free();
});

test('wrong uses of keys', async () => {
    const [making, opening] = [await web.encryptionKeys({ keyFile }), web.decryptionKeys({ keyFile })];
    const file = await passed(plain, web.encryptStream({ keys: making }));
    const wrong = { code: 'argument' };
    await assert.rejects(passed(plain, web.encryptStream({ keys: opening })), wrong);
    await assert.rejects(passed(file, web.decryptStream({ keys: making })), wrong);
    await assert.rejects(passed(plain, web.encryptStream({ keys: making, keyFile })), wrong);
    await assert.rejects(passed(file, web.decryptStream({ keys: {} })), wrong);
    await assert.rejects(web.encryptionKeys({}), wrong);
    assert.throws(() => web.decryptionKeys({}), wrong);
    await assert.rejects(web.encryptionKeys({ keys: making }), wrong);
    assert.throws(() => web.decryptionKeys({ keys: opening }), wrong);
    const other = web.decryptionKeys({ keyFile: web.generateKeyFile() });
    for (let i = 0; i < 2; i++) await assert.rejects(passed(file, web.decryptStream({ keys: other })), { code: 'wrong-key' });
    making.free();
    await assert.rejects(passed(plain, web.encryptStream({ keys: making })), wrong);
});
