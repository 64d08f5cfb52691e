// Tests encrypted files: streams, random access, and exchange with the command.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { BACKENDS, noise, passed, web } from './package.js';

const folder = mkdtempSync(join(tmpdir(), 'lockstep-web-'));
after(() => rmSync(folder, { recursive: true }));
const path = (name) => join(folder, name);

/** Runs the command. */
function lockstep(command, ...args) {
    return execFileSync(process.env.LOCKSTEP, [command, '--quiet', ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });
}

const LENGTHS = [0, 1, 16383, 16384, 16385, 5 * 16384, 1 << 20, 3_333_333];
const keyFile = web.generateKeyFile();
writeFileSync(path('key'), keyFile);
const { identity, recipient } = web.generateIdentity();
writeFileSync(path('identity'), `# an identity\n${identity}\n`);
const PASSPHRASE = 'correct horse battery staple';
writeFileSync(path('passphrase'), `${PASSPHRASE}\n`);

test('key files and identities have their forms', () => {
    assert.match(Buffer.from(keyFile).toString(), /^lockstep-key-256 [0-9a-f]{64}\n$/);
    assert.match(identity, /^AGE-SECRET-KEY-1[0-9A-Z]{58}$/);
    assert.match(recipient, /^age1[0-9a-z]{58}$/);
    assert.notDeepEqual(web.generateKeyFile(), keyFile);
});

test('files are exchanged with the command in both directions, on each backend', async () => {
    for (const [index, length] of LENGTHS.entries()) {
        const plain = noise(length, length);
        writeFileSync(path('plain'), plain);
        lockstep('encrypt', '-k', 'key', '-f', '-o', 'theirs', 'plain');
        for (const backend of BACKENDS) {
            // The pieces of the input end at any position in chunks.
            const piece = [777, 16384, 65536, 100_003][(index + BACKENDS.indexOf(backend)) % 4];
            assert.deepEqual(await passed(readFileSync(path('theirs')), web.decryptStream({ keyFile, backend }), piece), Buffer.from(plain));
            const ours = await passed(plain, web.encryptStream({ keyFile, backend }), piece);
            writeFileSync(path('ours'), ours);
            assert.deepEqual(lockstep('decrypt', '-k', 'key', '-o', '-', 'ours'), Buffer.from(plain), `${backend}, ${length}`);
        }
    }
});

test('a key file of 128 bits, and one in UTF-16', async () => {
    lockstep('keygen', '--bits', '128', '-o', 'key128');
    writeFileSync(path('plain'), noise(1, 50_000));
    lockstep('encrypt', '-k', 'key128', '-f', '-o', 'theirs', 'plain');
    const text = readFileSync(path('key128'), 'latin1');
    const utf16 = Uint8Array.from(Buffer.from(`\ufeff${text}`, 'utf16le'));
    for (const backend of BACKENDS) {
        const opened = await passed(readFileSync(path('theirs')), web.decryptStream({ keyFile: utf16, backend }));
        assert.deepEqual(opened, Buffer.from(noise(1, 50_000)));
    }
});

test('envelopes with recipients are exchanged with the command', async () => {
    const plain = noise(2, 100_000);
    writeFileSync(path('plain'), plain);
    lockstep('encrypt', '-r', recipient, '-f', '-o', 'theirs', 'plain');
    const other = web.generateIdentity();
    const text = readFileSync(path('identity'), 'utf8');
    for (const piece of [1000, 65536]) {
        const opened = await passed(readFileSync(path('theirs')), web.decryptStream({ identities: [other.identity, text] }), piece);
        assert.deepEqual(opened, Buffer.from(plain));
    }
    writeFileSync(path('ours'), await passed(plain, web.encryptStream({ recipients: [other.recipient, recipient] })));
    assert.deepEqual(lockstep('decrypt', '-i', 'identity', '-o', '-', 'ours'), Buffer.from(plain));
});

test('envelopes with passphrases are exchanged with the command', async () => {
    const plain = noise(3, 20_000);
    writeFileSync(path('plain'), plain);
    lockstep('encrypt', '--passphrase-file', 'passphrase', '-f', '-o', 'theirs', 'plain');
    assert.deepEqual(await passed(readFileSync(path('theirs')), web.decryptStream({ passphrase: PASSPHRASE })), Buffer.from(plain));
    writeFileSync(path('ours'), await passed(plain, web.encryptStream({ passphrase: PASSPHRASE })));
    assert.deepEqual(lockstep('decrypt', '--passphrase-file', 'passphrase', '-o', '-', 'ours'), Buffer.from(plain));
});

test('any part of a Blob is read, on each backend', async () => {
    for (const length of [0, 16384, 2_500_000]) {
        const plain = noise(length, length);
        const blob = new Blob([await passed(plain, web.encryptStream({ keyFile }))]);
        for (const backend of BACKENDS) {
            const file = await web.openBlob(blob, { keyFile, backend });
            assert.equal(file.size, length);
            for (const [offset, count] of [[0, 0], [0, 10], [16383, 2], [16384, 16384], [length - 1, 5], [length, 5], [100_001, 1_500_000]]) {
                if (offset < 0) continue;
                assert.deepEqual(await file.read(offset, count), plain.slice(offset, offset + count));
            }
            await assert.rejects(file.read(-1, 5), { code: 'argument' });
            file.free();
        }
    }
});

test('a file at a URL is read by ranges', async () => {
    const plain = noise(9, 400_000);
    const sealed = await passed(plain, web.encryptStream({ recipients: [recipient] }));
    let sent = 0;
    const server = createServer((request, response) => {
        const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range) ?? [];
        if (request.url === '/whole' || from === undefined) return response.end(sealed);
        if (request.url !== '/file') return response.writeHead(404).end();
        const part = sealed.subarray(Number(from), Number(to) + 1);
        sent += part.length;
        return response.writeHead(206, { 'content-range': `bytes ${from}-${to}/${sealed.length}` }).end(part);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = (name) => `http://127.0.0.1:${server.address().port}/${name}`;
    try {
        const file = await web.openUrl(url('file'), { identities: [identity] });
        assert.equal(file.size, plain.length);
        assert.deepEqual(await file.read(200_000, 1000), plain.slice(200_000, 201_000));
        assert(sent < 60_000, `${sent} bytes were sent for 1000`);
        await assert.rejects(web.openUrl(url('whole'), { identities: [identity] }), { code: 'no-ranges' });
        await assert.rejects(web.openUrl(url('none'), { identities: [identity] }), { code: 'http', message: /404/ });
    } finally {
        server.close();
    }
});
