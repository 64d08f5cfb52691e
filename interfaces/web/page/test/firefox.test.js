// Tests the package and the section of files in a headless Firefox. Its WebGPU and WebGL need a graphics driver, so the GPU is not tested.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from './browser.js';

let site, browser, folder;

function program() {
    for (const name of ['firefox-esr', 'firefox']) {
        try {
            return execFileSync('which', [name], { encoding: 'utf8' }).trim();
        } catch {
            // The next one.
        }
    }
    throw new Error('there is no Firefox: `tools/setup.sh firefox` installs one');
}

before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lockstep-firefox.'));
    site = await serve(process.env.LOCKSTEP_PAGE);
    // Firefox refuses to start if it is root in the home folder of another user.
    browser = await puppeteer.launch({ browser: 'firefox', executablePath: program(), headless: true, env: { ...process.env, HOME: folder } });
});
after(async () => {
    await browser?.close();
    site?.server.close();
    await rm(folder, { recursive: true, force: true });
});

async function ready() {
    const page = await browser.newPage();
    const wrong = [];
    page.on('console', (message) => ['error', 'warn'].includes(message.type()) && wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(`exception: ${error.message}`));
    await page.goto(site.url);
    await page.waitForSelector('#files-start:enabled');
    return { page, wrong };
}

test('the package: modes, streams and keys, with WebAssembly and with WebCrypto', async () => {
    const { page, wrong } = await ready();
    const failures = await page.evaluate(async () => {
        const web = await import(new URL('lockstep/lockstep.js', location.href));
        await web.init();
        const failed = [];
        const equal = (a, b) => a.length === b.length && a.every((byte, index) => byte === b[index]);
        const random = (length) => crypto.getRandomValues(new Uint8Array(length));
        const [key, nonce, aad] = [random(32), random(12), random(20)];
        const imported = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt']);
        for (const length of [0, 1, 16, 100, 128, 1000, 16384, 50001]) {
            const plain = random(length);
            const expected = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce, additionalData: aad }, imported, plain));
            const mode = web.aead('GCM', key);
            if (!equal(mode.seal(nonce, aad, plain), expected)) failed.push(`seal ${length}`);
            if (!equal(await mode.sealAsync(nonce, aad, plain), expected)) failed.push(`sealAsync ${length}`);
            if (!equal(mode.open(nonce, aad, expected), plain)) failed.push(`open ${length}`);
            mode.free();
        }
        for (const { name, keyLengths, nonceLengths, nonceIsOptional } of web.aeads()) {
            const mode = web.aead(name, random(keyLengths.at(-1)));
            const used = nonceIsOptional ? new Uint8Array(0) : random(nonceLengths[0][1] === Infinity ? 12 : nonceLengths[0][1]);
            const plain = random(3000);
            const sealed = mode.seal(used, aad, plain);
            if (!equal(mode.open(used, aad, sealed), plain)) failed.push(name);
            sealed[1000] ^= 1;
            try {
                mode.open(used, aad, sealed);
                failed.push(`${name} accepts a changed message`);
            } catch (error) {
                if (error.code !== 'not-authentic') failed.push(`${name}: ${error.message}`);
            }
        }
        const { identity, recipient } = web.generateIdentity();
        const keyFile = web.generateKeyFile();
        const plain = new Uint8Array(3_000_001).map((_, index) => index * 7);
        for (const backend of ['wasm', 'webcrypto', 'auto']) {
            for (const [to, from] of [[{ keyFile }, { keyFile }], [{ recipients: [recipient] }, { identities: [identity] }], [{ passphrase: 'x' }, { passphrase: 'x' }]]) {
                // A derivation takes seconds.
                if (to.passphrase && backend !== 'auto') continue;
                const stream = new Blob([plain]).stream().pipeThrough(web.encryptStream({ ...to, backend })).pipeThrough(web.decryptStream({ ...from, backend }));
                if (!equal(new Uint8Array(await new Response(stream).arrayBuffer()), plain)) failed.push(`${backend} ${Object.keys(to)}`);
            }
        }
        return failed;
    });
    assert.deepEqual(failures, []);
    assert.deepEqual(wrong, []);
    await page.close();
});

test('the page: files with a key file, there and back, and a file that was cut off', async () => {
    const { page, wrong } = await ready();
    await page.click('#new-key');
    const data = randomBytes(300_000);
    await writeFile(join(folder, 'data.bin'), data);
    const outcome = async () => {
        await page.waitForFunction(() => /\b(good|error)\b/.test(document.getElementById('files-message').className));
        return page.evaluate(() => {
            const message = document.getElementById('files-message');
            const text = `${message.className}: ${message.textContent}`;
            message.className = 'message';
            return text;
        });
    };
    await (await page.$('#inputs')).uploadFile(join(folder, 'data.bin'));
    // The result of the encryption becomes the input of the decryption.
    await page.evaluate(() => {
        globalThis.made = [];
        const { createObjectURL } = URL;
        URL.createObjectURL = (blob) => {
            globalThis.made.push(blob);
            return createObjectURL.call(URL, blob);
        };
    });
    await page.click('#files-start');
    assert.match(await outcome(), /good: 1 file encrypted\. Save/);
    await page.click('input[name=action][value=decrypt]');
    await page.evaluate(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([globalThis.made[0]], 'data.bin.enc'));
        transfer.items.add(new File([globalThis.made[0].slice(0, 100_000)], 'cut.bin.enc'));
        document.getElementById('inputs').files = transfer.files;
    });
    await page.click('#files-start');
    assert.match(await outcome(), /error: 1 file failed, 1 file decrypted and verified/);
    const plain = await page.evaluate(async () => Array.from(new Uint8Array(await globalThis.made.at(-1).arrayBuffer())));
    assert.ok(Buffer.from(plain).equals(data));
    assert.match(await page.$eval('#files-results .error', (item) => item.textContent), /cut\.bin\.enc: /);
    assert.equal(await page.$eval('#folder-field', (field) => field.hidden), false);
    assert.deepEqual(wrong, []);
    await page.close();
});
