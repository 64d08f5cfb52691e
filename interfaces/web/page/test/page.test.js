// Tests the page as a whole: files, keys, the policy, and the width on a desktop and on a phone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, outcome, ready, saved, serve, until } from './browser.js';

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

/** Encrypts or decrypts files with the key that is chosen, and waits for the outcome. */
async function processed(page, action, files) {
    await page.check(`input[name=action][value=${action}]`);
    await page.setInputFiles('#inputs', files);
    await page.click('#files-start');
    return outcome(page);
}

/** Counts the files in the private storage. The browser runs this function. */
async function storedFiles() {
    let count = 0;
    for await (const [, folder] of (await navigator.storage.getDirectory()).entries()) for await (const name of folder.keys()) count += Boolean(name);
    return count;
}

const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

test('a key file: there and back, with the command, and damaged files are not offered', async () => {
    const { page, wrong } = await ready(browser, site.url);
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
    // The chunks 1 and 2 in exchanged order.
    const chunk = (index) => sealed.subarray(56 + 16400 * index, 56 + 16400 * (index + 1));
    const reordered = Buffer.concat([sealed.subarray(0, 56 + 16400), chunk(2), chunk(1), sealed.subarray(56 + 3 * 16400)]);
    const bad = [file('flipped.enc', flipped), file('cut.enc', sealed.subarray(0, 1_500_000)), file('other.enc', data), file('reordered.enc', reordered)];
    const [kind, text] = await processed(page, 'decrypt', bad);
    assert.match(kind, /error/);
    assert.match(text, /4 files failed/);
    assert.equal(await page.locator('#files-results a').count(), before);
    const reasons = await page.locator('#files-results .error').allTextContents();
    const expected = [/chunk 121 .*not authentic.*get an intact copy/, /end too early.*get a complete copy|cut off/, /other\.enc: .*(key|wrong)/, /chunk 1 .*not authentic.*get an intact copy/];
    assert.equal(reasons.length, expected.length);
    expected.forEach((pattern, index) => assert.match(reasons[index], pattern));

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
    const { page, wrong } = await ready(browser, site.url);
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
    const { page } = await ready(browser, site.url);
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
    assert.equal(await page.evaluate(storedFiles), 0);
    await page.context().close();
});

test('another key, or another kind of key', async () => {
    const { page, wrong } = await ready(browser, site.url);
    await page.click('#new-key');
    await processed(page, 'encrypt', [file('a.txt', Buffer.from('a short text'))]);
    const sealed = await saved(page, 'a.txt.enc');
    await page.check('input[name=action][value=encrypt]');
    await page.click('#new-key');
    const last = () => page.textContent('#files-results li >> nth=-1');
    assert.match((await processed(page, 'decrypt', [file('a.txt.enc', sealed)]))[0], /error/);
    assert.match(await last(), /a\.txt\.enc: .*wrong key/i);
    await page.check('input[name=kind][value=passphrase]');
    await page.fill('#passphrase', 'correct horse');
    assert.match((await processed(page, 'decrypt', [file('a.txt.enc', sealed)]))[0], /error/);
    assert.match(await last(), /key file.*give the key file/);
    assert.equal(await page.locator('#files-results a[download="a.txt"]').count(), 0);
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('a full storage removes the result and says how to make room', async () => {
    const { page } = await ready(browser, site.url);
    const protocol = await page.context().newCDPSession(page);
    await protocol.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, quotaSize: 8 << 20 });
    await page.click('#new-key');
    const [kind] = await processed(page, 'encrypt', [file('large.bin', Buffer.alloc(16 << 20)), file('small.bin', Buffer.alloc(1 << 20))]);
    assert.match(kind, /error/);
    assert.match(await page.textContent('#files-results .error'), /large\.bin: .*full\..*make room on the disk/);
    assert.deepEqual(await page.locator('#files-results a').evaluateAll((links) => links.map((link) => link.download)), ['lockstep.key', 'small.bin.enc']);
    await page.context().close();
});

test('a result that cannot be opened for writing leaves no file in the storage', async () => {
    const { page } = await ready(browser, site.url);
    await page.click('#new-key');
    await page.evaluate(() => (FileSystemFileHandle.prototype.createWritable = () => Promise.reject(new DOMException('full', 'QuotaExceededError'))));
    assert.match((await processed(page, 'encrypt', [file('a.txt', Buffer.from('a short text'))]))[0], /error/);
    assert.match(await page.textContent('#files-results .error'), /a\.txt: .*full/);
    assert.equal(await page.evaluate(storedFiles), 0);
    await page.context().close();
});

test('without storage, results are kept in memory, up to a limit', async () => {
    const { page } = await ready(browser, site.url, { before: () => delete StorageManager.prototype.getDirectory });
    assert.match(await page.textContent('#files-limit'), /limited to 512 MiB/);
    await page.click('#new-key');
    await page.evaluate(() => {
        const transfer = new DataTransfer();
        for (const [name, mebibytes] of [['large.bin', 513], ['small.bin', 1]]) transfer.items.add(new File(Array(mebibytes).fill(new Uint8Array(1 << 20)), name));
        document.getElementById('inputs').files = transfer.files;
    });
    await page.click('#files-start');
    assert.match((await outcome(page))[0], /error/);
    assert.match(await page.textContent('#files-results .error'), /large\.bin: .*limited to 512 MiB.*the command lockstep/);
    assert.equal((await saved(page, 'small.bin.enc')).length, 72 + (1 << 20) + 64 * 16);
    await page.context().close();
});

test('without SIMD in WebAssembly, the page names the browsers that have it, and other sections work', async () => {
    const { page, wrong } = await open(browser, site.url, { query: '?quick', before: () => (WebAssembly.validate = () => false) });
    await page.waitForSelector('#files-message.error');
    assert.match(await page.textContent('#files-message'), /no WebAssembly with SIMD: update it \(Chrome 91, Firefox 89/);
    assert.equal(await page.isDisabled('#files-start'), true);
    await page.locator('#picture').scrollIntoViewIfNeeded();
    await page.waitForSelector('#picture-message.good');
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('a tab that is closed during an operation leaves nothing to the next one', async () => {
    const { page, context } = await ready(browser, site.url);
    await page.click('#new-key');
    await page.evaluate(() => {
        // A file that never ends.
        Blob.prototype.stream = () => new ReadableStream({ pull: (controller) => new Promise((resolve) => setTimeout(() => resolve(controller.enqueue(new Uint8Array(65536))), 5)) });
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(100)], 'endless.bin'));
        document.getElementById('inputs').files = transfer.files;
    });
    await page.click('#files-start');
    await until(page, storedFiles);
    let asked = false;
    page.on('dialog', async (dialog) => {
        asked = dialog.type() === 'beforeunload';
        await dialog.accept();
    });
    const other = await context.newPage();
    await page.close({ runBeforeUnload: true });
    if (!page.isClosed()) await page.waitForEvent('close');
    assert.ok(asked, 'the browser asks before it closes the tab');
    await other.goto(site.url);
    await other.waitForSelector('#files-start:enabled');
    assert.equal(await other.evaluate(storedFiles), 0);
    assert.equal(await other.locator('#files-results li').count(), 0);
    await context.close();
});

test('the policy forbids other hosts and inline scripts', async () => {
    const { page, wrong } = await ready(browser, site.url);
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
            const { page, wrong } = await ready(browser, site.url, { viewport, colorScheme });
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
            const unnamed = await page.evaluate(() => [...document.querySelectorAll('input, textarea, button, progress')]
                .filter((field) => !(field.labels?.length || field.getAttribute('aria-label') || field.textContent.trim())).map((field) => field.id));
            assert.deepEqual(unnamed, []);
            assert.deepEqual(wrong, []);
            await page.context().close();
        }
    }
});
