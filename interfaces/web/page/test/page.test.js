// Tests the page as a whole: files, keys, the policy, and the width on a desktop and on a phone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, serve } from './browser.js';

let site, browser, folder;

before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lockstep-page.'));
    site = await serve(process.env.LOCKSTEP_PAGE);
    browser = await launch();
});
after(async () => {
    await browser?.close();
    site?.server.close();
    await rm(folder, { recursive: true, force: true });
});

/** Opens the page, and waits until files can be processed. */
async function ready(options) {
    const opened = await open(browser, site.url, options);
    await opened.page.waitForSelector('#files-start:enabled');
    return opened;
}

async function saved(page, name) {
    const download = page.waitForEvent('download');
    await page.click(`#files-results a[download="${name}"] >> nth=-1`);
    return readFile(await (await download).path());
}

/** Encrypts or decrypts files with the key that is chosen, and waits for the outcome. */
async function processed(page, action, files) {
    await page.check(`input[name=action][value=${action}]`);
    await page.setInputFiles('#inputs', files);
    await page.click('#files-start');
    await page.waitForFunction(() => /\b(good|error)\b/.test(document.getElementById('files-message').className), null, { timeout: 60000 });
    const kind = await page.getAttribute('#files-message', 'class');
    await page.evaluate(() => (document.getElementById('files-message').className = 'message'));
    return [kind, await page.textContent('#files-message')];
}

const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

test('a key file: there and back, with the command, and damaged files are not offered', async () => {
    const { page, wrong } = await ready();
    const data = randomBytes(3_000_001);
    await page.click('#new-key');
    const key = await saved(page, 'lockstep.key');
    assert.match(key.toString(), /^lockstep-key-256 [0-9a-f]{64}\n$/);
    assert.match((await processed(page, 'encrypt', [file('data.bin', data)]))[0], /good/);
    const sealed = await saved(page, 'data.bin.enc');
    assert.match((await processed(page, 'decrypt', [file('data.bin.enc', sealed)]))[0], /good/);
    assert.ok((await saved(page, 'data.bin')).equals(data));

    const before = await page.locator('#files-results a').count();
    const flipped = Buffer.from(sealed);
    flipped[2_000_000] ^= 1;
    const bad = [file('flipped.enc', flipped), file('cut.enc', sealed.subarray(0, 1_500_000)), file('other.enc', data)];
    const [kind, text] = await processed(page, 'decrypt', bad);
    assert.match(kind, /error/);
    assert.match(text, /3 files failed/);
    assert.equal(await page.locator('#files-results a').count(), before);
    assert.equal(await page.locator('#files-results .error').count(), 3);

    if (process.env.LOCKSTEP) {
        const path = (name) => join(folder, name);
        await writeFile(path('key'), key, { mode: 0o600 });
        await writeFile(path('in.enc'), sealed);
        execFileSync(process.env.LOCKSTEP, ['decrypt', '-k', path('key'), path('in.enc'), '-o', path('out')]);
        assert.ok((await readFile(path('out'))).equals(data));
        execFileSync(process.env.LOCKSTEP, ['encrypt', '-k', path('key'), path('out'), '-o', path('made.enc')]);
        assert.match((await processed(page, 'decrypt', [path('made.enc')]))[0], /good/);
        assert.ok((await saved(page, 'made')).equals(data));
    }
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('a passphrase and an identity', async () => {
    const { page, wrong } = await ready();
    const data = Buffer.from('a short text');
    await page.check('input[name=kind][value=passphrase]');
    await page.fill('#passphrase', 'correct horse');
    await page.fill('#passphrase-again', 'correct hose');
    assert.match((await processed(page, 'encrypt', [file('a.txt', data)]))[1], /differ/);
    await page.fill('#passphrase-again', 'correct horse');
    assert.match((await processed(page, 'encrypt', [file('a.txt', data)]))[0], /good/);
    const sealed = await saved(page, 'a.txt.enc');
    assert.match((await processed(page, 'decrypt', [file('a.txt.enc', sealed)]))[0], /good/);
    assert.ok((await saved(page, 'a.txt')).equals(data));

    await page.check('input[name=action][value=encrypt]');
    await page.check('input[name=kind][value=age]');
    await page.click('#new-identity');
    const identity = await saved(page, 'identity.txt');
    assert.match((await processed(page, 'encrypt', [file('b.txt', data)]))[0], /good/);
    const wrapped = await saved(page, 'b.txt.enc');
    await page.check('input[name=action][value=decrypt]');
    await page.setInputFiles('#identity-file', file('identity.txt', identity));
    assert.match((await processed(page, 'decrypt', [file('b.txt.enc', wrapped)]))[0], /good/);
    assert.ok((await saved(page, 'b.txt')).equals(data));
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('cancelling leaves no result', async () => {
    const { page } = await ready();
    await page.click('#new-key');
    await page.locator('#files-results li').waitFor();
    await page.evaluate(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(256 << 20)], 'large.bin'));
        document.getElementById('inputs').files = transfer.files;
    });
    const before = await page.locator('#files-results li').count();
    await page.click('#files-start');
    await page.click('#files-cancel');
    await page.waitForFunction(() => document.getElementById('files-message').textContent.startsWith('Cancelled'));
    assert.equal(await page.locator('#files-results li').count(), before);
    const left = await page.evaluate(async () => {
        const names = [];
        for await (const [, folder] of (await navigator.storage.getDirectory()).entries()) for await (const name of folder.keys()) names.push(name);
        return names;
    });
    assert.deepEqual(left, []);
    await page.context().close();
});

test('the policy forbids other hosts and inline scripts', async () => {
    const { page, wrong } = await ready();
    const fetched = await page.evaluate(() => fetch('https://example.invalid/').then(() => 'done', () => 'refused'));
    assert.equal(fetched, 'refused');
    await page.evaluate(() => {
        const script = document.createElement('script');
        script.textContent = 'globalThis.injected = true';
        document.head.append(script);
    });
    assert.equal(await page.evaluate(() => globalThis.injected), undefined);
    // These messages show that violations of the policy are detected.
    assert.ok(wrong.some((text) => text.startsWith('console: policy: connect-src')));
    assert.ok(wrong.some((text) => text.startsWith('console: policy: script-src')));
    await page.context().close();
});

test('every field has a label, and the page fits a desktop and a phone in both colour schemes', async () => {
    for (const viewport of [{ width: 1280, height: 900 }, { width: 360, height: 740 }]) {
        for (const colorScheme of ['light', 'dark']) {
            const { page, wrong } = await ready({ viewport, colorScheme });
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
            const unnamed = await page.evaluate(() => [...document.querySelectorAll('input, textarea, button, progress')]
                .filter((field) => !(field.labels?.length || field.getAttribute('aria-label') || field.textContent.trim())).map((field) => field.id));
            assert.deepEqual(unnamed, []);
            assert.deepEqual(wrong, []);
            await page.context().close();
        }
    }
});
