// Tests folders: with the dialogs for folders, whose place the browser's private storage takes here, and with an archive.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, outcome, ready, saved, serve, until } from './browser.js';

let site, browser, folder;
/** The files of the folder `photos`. */
const FILES = { 'a.txt': Buffer.from('a short text'), 'summer/größe.bin': randomBytes(100_000), 'summer/empty': Buffer.alloc(0), 'b.bin': randomBytes(16384) };

before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lockstep-folders.'));
    site = await serve(process.env.LOCKSTEP_PAGE);
    browser = await launch();
    for (const [name, content] of Object.entries(FILES)) {
        const path = join(folder, 'photos', name);
        await mkdir(join(path, '..'), { recursive: true });
        await writeFile(path, content);
        await utimes(path, 1_500_000_000, 1_500_000_000);
    }
});
after(async () => {
    await browser?.close();
    site?.server.close();
    await rm(folder, { recursive: true, force: true });
});

/** Checks that a folder of this machine has the files, and their times. */
async function check(path) {
    const names = (await readdir(path, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    assert.equal(names.length, Object.keys(FILES).length);
    for (const [name, content] of Object.entries(FILES)) {
        assert.ok((await readFile(join(path, name))).equals(content), name);
        assert.equal((await stat(join(path, name))).mtimeMs, 1_500_000_000_000, name);
    }
}

async function started(page, action, input) {
    await page.check(`input[name=action][value=${action}]`);
    await page.check('input[name=input][value=folder]');
    if (input) await page.setInputFiles('#folder', input);
    await page.click('#files-start');
    return outcome(page);
}

/** Unpacks an archive. Python's module checks the CRC of each file, but does not set times. */
async function unpack(content, name) {
    const archive = join(folder, `${name}.zip`);
    await writeFile(archive, content);
    const script = 'import sys, zipfile, os, struct\n'
        + 'for entry in (archive := zipfile.ZipFile(sys.argv[1])).infolist():\n'
        + '    path = archive.extract(entry, sys.argv[2])\n'
        + '    kind, length, flags, time = struct.unpack("<HHBI", entry.extra[:9])\n'
        + '    assert (kind, length, flags, entry.external_attr >> 16) == (0x5455, 5, 1, 0o100644)\n'
        + '    os.utime(path, (time, time))\n';
    execFileSync('python3', ['-c', script, archive, join(folder, name)]);
}

const withoutPicker = () => delete globalThis.showDirectoryPicker;

test('a folder as an archive: there and back, and with the command', async () => {
    const { page, wrong } = await ready(browser, site.url, { before: withoutPicker });
    await page.click('#new-key');
    const key = await saved(page, 'lockstep.key');
    assert.match((await started(page, 'encrypt', join(folder, 'photos')))[1], /^4 files encrypted\. Save/);
    await unpack(await saved(page, 'photos.zip'), 'sealed');
    await mkdir(join(folder, 'sealed', 'photos', 'empty'));
    await writeFile(join(folder, 'sealed', 'photos', 'notes.txt'), 'not encrypted');
    assert.match((await started(page, 'decrypt', join(folder, 'sealed', 'photos')))[1], /^4 files decrypted and verified\. Save/);
    assert.match(await page.textContent('#files-results li >> nth=-2'), /^1 file skipped/);
    await unpack(await saved(page, 'photos.zip'), 'back');
    await check(join(folder, 'back', 'photos'));

    // A file that is damaged is not in the archive.
    const path = join(folder, 'sealed', 'photos', 'b.bin.enc');
    const content = await readFile(path);
    await writeFile(path, Buffer.concat([content.subarray(0, 100), Buffer.from([content[100] ^ 1]), content.subarray(101)]));
    assert.match((await started(page, 'decrypt', join(folder, 'sealed', 'photos')))[1], /^1 file failed, 3 files decrypted/);
    await unpack(await saved(page, 'photos.zip'), 'part');
    assert.deepEqual((await readdir(join(folder, 'part', 'photos'))).sort(), ['a.txt', 'summer']);
    await writeFile(path, content);
    await utimes(path, 1_500_000_000, 1_500_000_000);

    if (process.env.LOCKSTEP) {
        const run = (...words) => execFileSync(process.env.LOCKSTEP, words, { cwd: folder, stdio: 'pipe' });
        await writeFile(join(folder, 'key'), key, { mode: 0o600 });
        run('decrypt', '-k', 'key', '-r', '-O', 'by-command', 'sealed/photos');
        await check(join(folder, 'by-command', 'photos'));
        run('encrypt', '-k', 'key', '-r', '-O', 'made', 'photos');
        assert.match((await started(page, 'decrypt', join(folder, 'made', 'photos')))[1], /^4 files decrypted/);
        await unpack(await saved(page, 'photos.zip'), 'of-command');
        await check(join(folder, 'of-command', 'photos'));
    }
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('an archive has no names with backslashes and no paths that are too long', async () => {
    const { page, wrong } = await ready(browser, site.url, { before: withoutPicker });
    await page.evaluate(() => {
        const { get } = Object.getOwnPropertyDescriptor(File.prototype, 'webkitRelativePath');
        // The path of `a.txt` with `.enc` has 65,535 bytes, the most of an archive, and that of `empty` has one more.
        const names = { 'a.txt': `photos/${'ü'.repeat(32762)}`, empty: `photos/${'a'.repeat(65525)}`, 'b.bin': 'photos/..\\..\\x.exe' };
        Object.defineProperty(File.prototype, 'webkitRelativePath', { get() { return names[this.name] ?? get.call(this); } });
    });
    await page.click('#new-key');
    assert.match((await started(page, 'encrypt', join(folder, 'photos')))[1], /^2 files failed, 2 files encrypted/);
    const reasons = await page.locator('#files-results .error').allTextContents();
    assert.match(reasons.find((text) => text.startsWith('photos/..\\..\\x.exe: ')), /backslash/);
    assert.match(reasons.find((text) => text.startsWith('photos/aaa')), /more than 65535 bytes/);
    const path = join(folder, 'limits.zip');
    await writeFile(path, await saved(page, 'photos.zip'));
    const script = 'import sys, zipfile; print(sorted(len(name.encode()) for name in zipfile.ZipFile(sys.argv[1]).namelist()))';
    assert.equal(execFileSync('python3', ['-c', script, path], { encoding: 'utf8' }).trim(), `[${Buffer.byteLength('photos/summer/größe.bin.enc')}, 65535]`);
    assert.deepEqual(wrong, []);
    await page.context().close();
});

/** The dialogs for folders return folders of the private storage: `in`, `out` and so on, by the names in `pickedFolders`. */
function withPicker() {
    globalThis.pickedFolders = ['photos', 'out'];
    globalThis.showDirectoryPicker = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(pickedFolders.shift(), { create: true });
}

/** Writes the files into a folder of the private storage. */
async function fill(page) {
    const files = Object.entries(FILES).map(([name, content]) => [name, content.toString('base64')]);
    await page.evaluate(async (list) => {
        const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('photos', { create: true });
        await root.getDirectoryHandle('nothing', { create: true });
        for (const [path, content] of list) {
            const names = path.split('/');
            const parent = names.length > 1 ? await root.getDirectoryHandle(names[0], { create: true }) : root;
            const stream = await (await parent.getFileHandle(names.at(-1), { create: true })).createWritable();
            await stream.write(Uint8Array.from(atob(content), (character) => character.charCodeAt(0)));
            await stream.close();
        }
    }, files);
}

/** Lists a folder of the private storage: the files with their contents, and the folders. */
function listing(page, name) {
    return page.evaluate(async (first) => {
        const found = {};
        async function list(parent, prefix) {
            for await (const handle of parent.values()) {
                const path = `${prefix}${handle.name}`;
                if (handle.kind === 'directory') await list(handle, `${path}/`).then(() => (found[`${path}/`] = ''));
                else found[path] = btoa(Array.from(new Uint8Array(await (await handle.getFile()).arrayBuffer()), (byte) => String.fromCharCode(byte)).join(''));
            }
        }
        await list(await (await navigator.storage.getDirectory()).getDirectoryHandle(first, { create: true }), '');
        return found;
    }, name);
}

async function choose(page, ...names) {
    await page.evaluate((list) => (globalThis.pickedFolders = list), names);
    await page.check('input[name=input][value=folder]');
    await page.click('#folder-choose');
    await page.waitForFunction((name) => document.getElementById('folder-name').textContent === name, names[0]);
}

const EXPECTED = Object.fromEntries([
    ...Object.entries(FILES).map(([name, content]) => [`photos/${name}`, content.toString('base64')]), ['photos/', ''], ['photos/summer/', ''], ['photos/nothing/', ''],
]);

for (const [what, before] of [['renames', withPicker], ['copies, because the browser cannot rename,', () => delete FileSystemFileHandle.prototype.move]]) {
    test(`a folder of the disk: the page ${what} complete results`, async () => {
        const { page, wrong } = await ready(browser, site.url, { before: withPicker });
        await page.evaluate(`(${before})()`);
        await fill(page);
        if (what === 'renames') {
            await page.check('input[name=kind][value=passphrase]');
            await page.fill('#passphrase', 'correct horse');
            await page.fill('#passphrase-again', 'correct horse');
        } else {
            await page.click('#new-key');
        }
        await choose(page, 'photos', 'out');
        assert.match((await started(page, 'encrypt'))[1], /^4 files encrypted into the folder out\.$/);
        const sealed = await listing(page, 'out');
        assert.deepEqual(Object.keys(sealed).sort(), Object.keys(EXPECTED).map((name) => (name.endsWith('/') ? name : `${name}.enc`)).sort());
        if (what === 'renames') {
            // The files of one call share an envelope: 17 bytes, the length, and the payload.
            const contents = Object.values(sealed).filter(Boolean).map((text) => Buffer.from(text, 'base64'));
            const envelopes = contents.map((content) => content.subarray(0, 21 + content.readUInt32LE(17)).toString('hex'));
            assert.equal(new Set(envelopes).size, 1);
        }

        // Existing files are not replaced.
        await choose(page, 'photos', 'out');
        const [kind, text] = await started(page, 'encrypt');
        assert.match(`${kind} ${text}`, /error.*4 files failed/);
        assert.match(await page.textContent('#files-results li >> nth=-1'), /already has a file/);
        assert.deepEqual(await listing(page, 'out'), sealed);

        await page.evaluate(async () => {
            const root = await navigator.storage.getDirectory();
            globalThis.showDirectoryPicker = async () => (pickedFolders.shift() === 'in' ? (await root.getDirectoryHandle('out')).getDirectoryHandle('photos') : root.getDirectoryHandle('back', { create: true }));
        });
        await page.evaluate(() => (globalThis.pickedFolders = ['in', 'back']));
        await page.click('#folder-choose');
        await page.waitForFunction(() => globalThis.pickedFolders.length === 1);
        assert.match((await started(page, 'decrypt'))[1], /^4 files decrypted and verified into the folder back\.$/);
        assert.deepEqual(await listing(page, 'back'), EXPECTED);
        assert.deepEqual(wrong, []);
        await page.context().close();
    });
}

test('the output folder must be another one, and a folder without files is an error', async () => {
    const { page } = await ready(browser, site.url, { before: withPicker });
    await page.click('#new-key');
    await fill(page);
    await choose(page, 'photos', 'photos');
    assert.match((await started(page, 'encrypt'))[1], /output folder is the input folder/);
    await choose(page, 'photos', 'out');
    assert.match((await started(page, 'decrypt'))[1], /contains no file whose name ends in \.enc\. Nothing was written/);
    assert.deepEqual(await listing(page, 'out'), {});
    await page.evaluate(() => (globalThis.showDirectoryPicker = () => Promise.reject(new DOMException('closed', 'AbortError'))));
    assert.match((await started(page, 'encrypt'))[1], /Choose a folder for the results/);
    await page.context().close();
});

test('a file that cannot be read, and a result that cannot be written, are failures of single files', async () => {
    const { page, wrong } = await ready(browser, site.url, { before: withPicker });
    await page.click('#new-key');
    await fill(page);
    const reasons = () => page.locator('#files-results .error').allTextContents();
    await page.evaluate(() => {
        globalThis.prototypes = [FileSystemFileHandle.prototype, FileSystemDirectoryHandle.prototype];
        globalThis.originals = prototypes.map((prototype) => Object.getOwnPropertyDescriptors(prototype));
        const { getFile } = FileSystemFileHandle.prototype;
        FileSystemFileHandle.prototype.getFile = function () {
            return this.name === 'b.bin' ? Promise.reject(new DOMException('locked', 'NotReadableError')) : getFile.call(this);
        };
    });
    const restore = () => page.evaluate(() => prototypes.forEach((prototype, index) => Object.defineProperties(prototype, originals[index])));
    await choose(page, 'photos', 'out');
    assert.match((await started(page, 'encrypt'))[1], /^1 file failed, 3 files encrypted into the folder out\./);
    assert.match((await reasons()).join(), /^photos\/b\.bin: The file or the folder cannot be read/);
    const expected = Object.keys(EXPECTED).map((name) => (name.endsWith('/') ? name : `${name}.enc`)).filter((name) => name !== 'photos/b.bin.enc');
    assert.deepEqual(Object.keys(await listing(page, 'out')).sort(), expected.sort());

    await restore();
    await page.evaluate(() => {
        const { values } = FileSystemDirectoryHandle.prototype;
        FileSystemDirectoryHandle.prototype.values = function () {
            const unreadable = { async *[Symbol.asyncIterator]() { throw new DOMException('locked', 'NotReadableError'); } };
            return this.name === 'summer' ? unreadable : values.call(this);
        };
    });
    await choose(page, 'photos', 'partial');
    assert.match((await started(page, 'encrypt'))[1], /^0 files and 1 folder failed, 2 files encrypted into the folder partial\./);
    assert.match((await reasons()).at(-1), /^photos\/summer: The file or the folder cannot be read/);
    await restore();
    assert.deepEqual(Object.keys(await listing(page, 'partial')).sort(), expected.concat('photos/b.bin.enc').filter((name) => !name.startsWith('photos/summer/')).sort());

    await page.evaluate(() => (FileSystemFileHandle.prototype.createWritable = () => Promise.reject(new DOMException('removed', 'NotFoundError'))));
    await choose(page, 'photos', 'unwritable');
    assert.match((await started(page, 'encrypt'))[1], /^4 files failed, 0 files/);
    for (const text of (await reasons()).slice(-4)) assert.match(text, /: The result cannot be written\. The output folder/);
    const folders = Object.keys(EXPECTED).filter((name) => name.endsWith('/')).sort();
    assert.deepEqual(Object.keys(await listing(page, 'unwritable')).sort(), folders);

    // Another program creates a file between the check of its name and the copy.
    await restore();
    await page.evaluate(() => {
        delete FileSystemFileHandle.prototype.move;
        const { getFileHandle } = FileSystemDirectoryHandle.prototype;
        FileSystemDirectoryHandle.prototype.getFileHandle = async function (name, options) {
            const handle = await getFileHandle.call(this, name, options);
            if (!options?.create || !name.endsWith('.enc')) return handle;
            const stream = await handle.createWritable();
            await stream.write('other');
            await stream.close();
            return handle;
        };
    });
    await choose(page, 'photos', 'raced');
    assert.match((await started(page, 'encrypt'))[1], /^4 files failed, 0 files/);
    for (const text of (await reasons()).slice(-4)) assert.match(text, /already has a file/);
    const kept = Object.entries(await listing(page, 'raced')).filter(([name]) => !name.endsWith('/'));
    assert.deepEqual(kept.map(([, content]) => content), Array(4).fill(btoa('other')));
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('a run that is cancelled while the key is derived creates nothing', async () => {
    const { page } = await ready(browser, site.url, { before: withPicker });
    await fill(page);
    await page.check('input[name=kind][value=passphrase]');
    await page.fill('#passphrase', 'correct horse');
    await page.fill('#passphrase-again', 'correct horse');
    await choose(page, 'photos', 'out');
    await page.click('#files-start');
    await page.waitForFunction(() => document.getElementById('files-message').textContent === 'Running.');
    await page.click('#files-cancel');
    await page.waitForFunction(() => document.getElementById('files-message').textContent.startsWith('Cancelled'));
    assert.deepEqual(await listing(page, 'out'), {});
    await page.context().close();
});

/** Makes the reading of the second file of a folder endless. */
function endless() {
    const stream = Blob.prototype.stream;
    let count = 0;
    Blob.prototype.stream = function () {
        if (++count !== 2) return stream.call(this);
        return new ReadableStream({ pull: (controller) => new Promise((resolve) => setTimeout(() => resolve(controller.enqueue(new Uint8Array(65536))), 5)) });
    };
}

test('a cancelled run and a closed tab leave no incomplete file under the name of a result', async () => {
    const { page, context } = await ready(browser, site.url, { before: withPicker });
    await page.evaluate(endless);
    await page.click('#new-key');
    await fill(page);
    await choose(page, 'photos', 'out');
    const start = async (target) => {
        await target.check('input[name=action][value=encrypt]');
        await target.click('#files-start');
        await until(target, async () => {
            const names = [];
            try {
                const out = await (await navigator.storage.getDirectory()).getDirectoryHandle('out');
                for await (const name of (await out.getDirectoryHandle('photos')).keys()) names.push(name);
            } catch {
                // The folder is missing, or a name was changed meanwhile.
            }
            return ['.enc', '.tmp'].every((end) => names.some((name) => name.endsWith(end)));
        });
    };
    await start(page);
    await page.click('#files-cancel');
    await page.waitForFunction(() => document.getElementById('files-message').textContent.startsWith('Cancelled'));
    const files = async (target) => Object.entries(await listing(target, 'out')).filter(([name]) => !name.endsWith('/'));
    const [[name, content], ...others] = await files(page);
    assert.deepEqual([name.endsWith('.enc'), others], [true, []]);

    // The same again in another tab, which is closed. The first file is complete.
    await page.evaluate(async () => (await navigator.storage.getDirectory()).removeEntry('out', { recursive: true }));
    await choose(page, 'photos', 'out');
    await page.evaluate(endless);
    await start(page);
    const other = await context.newPage();
    await other.goto(site.url);
    await page.close();
    const left = await files(other);
    assert.deepEqual(left.map(([path]) => path.replace(/[0-9a-f]{16}/, '')).sort(), ['photos/.lockstep-.tmp', name].sort());
    assert.equal(left.find(([path]) => path === name)[1].length, content.length);
    await context.close();
});
