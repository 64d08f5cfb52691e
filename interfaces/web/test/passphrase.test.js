// Tests the derivation of keys from passphrases without a worker. The package derives keys in this way if a policy of the page forbids
// workers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { web } from './package.js';

const file = (name) => import(pathToFileURL(`${process.env.LOCKSTEP_WEB}/${name}`));
const { answer } = await file('passphrase.js');
const { compiledModule } = await file('module.js');
const module = compiledModule();

test('without a worker', async () => {
    const { key, envelope } = await answer({ module, passphrases: ['right'] });
    assert.equal(key.length, 32);
    assert.deepEqual(await answer({ module, envelope, passphrases: ['wrong', 'right'] }), { key });
    assert.equal((await answer({ module, envelope, passphrases: ['wrong'] })).error.code, 'wrong-key');
    const other = await answer({ module, envelope: envelope.map((byte, index) => (index === 40 ? byte ^ 1 : byte)), passphrases: ['right'] });
    assert.equal(other.error.code, 'damaged');
    web.generateKeyFile();
});

test('a module that has stopped is not used again', async () => {
    // The generated code does not check the type of the argument, so this call reads memory outside of the module's memory.
    assert.equal((await answer({ module, passphrases: [5] })).error.code, 'memory');
    assert.throws(() => web.generateKeyFile(), { code: 'internal' });
    await assert.rejects(web.encryptStream({ passphrase: 'x' }).readable.getReader().read(), { code: 'internal' });
});
