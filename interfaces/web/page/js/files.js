// The section "Encrypt and decrypt files and folders".

import { byId, element, say, size } from './dom.js';
import { OutputArchive, OutputFolder, SUFFIX, hasPicker, listField, listFolder, resultPath } from './folders.js';
import { isUnlimited, place, prepare } from './storage.js';

const form = () => byId('files-form');
const chosen = (name) => form().elements[name].value;

let library;

/** Loads the npm package. The build puts the package into the folder of this page. */
async function load() {
    if (!library) {
        const loaded = await import('../lockstep/lockstep.js');
        await loaded.init();
        library = loaded;
    }
    return library;
}

/** Shows the fields of the chosen action and kind of key. */
function update() {
    const action = chosen('action');
    for (const name of ['action', 'kind', 'input']) {
        for (const part of form().querySelectorAll(`[data-${name}]`)) part.hidden = part.dataset[name] !== chosen(name);
    }
    byId('new-key').hidden = byId('new-identity').hidden = action === 'decrypt';
    byId('files-start').textContent = action === 'encrypt' ? 'Encrypt' : 'Decrypt';
    byId('passphrase').autocomplete = action === 'encrypt' ? 'new-password' : 'current-password';
}

const need = (value, text) => {
    if (!value) throw new Error(text);
    return value;
};

/** Returns the options of the library for the chosen key. */
async function keyOptions(action) {
    const kind = chosen('kind');
    if (kind === 'keyFile') {
        const file = need(byId('key-file').files[0], 'Choose a key file, or make a new one.');
        // A key file is a line of text. If the file is larger, it was chosen by mistake.
        if (file.size > 4096) throw new Error('This is not a key file: it is too large.');
        return { keyFile: new Uint8Array(await file.arrayBuffer().catch(cannotRead)) };
    }
    if (kind === 'passphrase') {
        const passphrase = need(byId('passphrase').value, 'Enter a passphrase.');
        if (action === 'encrypt' && passphrase !== byId('passphrase-again').value) throw new Error('The passphrases differ. Enter the same passphrase twice.');
        return { passphrase };
    }
    if (action === 'encrypt') {
        const recipients = byId('recipients').value.split('\n').map((line) => line.trim()).filter(Boolean);
        need(recipients.length, 'Enter a recipient (age1…), or make a new identity.');
        return { recipients };
    }
    const file = need(byId('identity-file').files[0], 'Choose the file of your identities (AGE-SECRET-KEY-1…).');
    if (file.size > 1 << 20) throw new Error('This is not a file of identities: it is too large.');
    return { identities: [await file.text().catch(cannotRead)] };
}

/** Makes a link that saves a file. */
function link(blob, name) {
    const anchor = element('a', { class: 'button', href: URL.createObjectURL(blob), download: name });
    anchor.textContent = `Save ${name}`;
    return anchor;
}

function result(...content) {
    const item = element('li', {}, ...content);
    byId('files-results').append(item);
    return item;
}

/** What to do if a file or a folder is missing, and if the browser forbids the access, by what the page did with it. */
const READ = {
    missing: 'The file or the folder cannot be read. It may have been changed or removed after it was chosen: choose it again.',
    forbidden: 'The browser does not permit this page to read the file or the folder: choose it again, and permit it.',
};
const WRITE = {
    missing: 'The result cannot be written. The output folder, or the browser’s storage for this page, may have been removed: reload the page and start again.',
    forbidden: 'The browser does not permit this page to write there: start again and permit it, or choose another folder.',
};

/** Explains an error. `texts` is `READ` or `WRITE`. */
function reason(error, texts = WRITE) {
    if (error.name === 'QuotaExceededError') return 'The disk, or the browser’s storage for this page, is full. Save the other results and reload the page, or make room on the disk.';
    if (error.name === 'NotReadableError' || error.name === 'NotFoundError') return texts.missing;
    if (error.name === 'NotAllowedError' || error.name === 'SecurityError') return texts.forbidden;
    return error.message;
}

/** Throws an error of reading an input, with its explanation. */
function cannotRead(error) {
    throw new Error(reason(error, READ), { cause: error });
}

/** The results of files, each with a link to save it. */
class Links {
    async place([name]) {
        const target = await place();
        return {
            ...target,
            async finish() {
                const blob = await target.finish();
                result(link(blob, name), ` ${size(blob.size)}`);
            },
        };
    }
}

/** The folder that the visitor has chosen, where the browser has a dialog for folders. */
let folder;

async function chooseFolder() {
    try {
        folder = await showDirectoryPicker({ id: 'lockstep-input', mode: 'read' });
        byId('folder-name').textContent = folder.name;
    } catch (error) {
        // The visitor has closed the dialog.
        if (error.name !== 'AbortError') say(byId('files-message'), reason(error, READ), 'error');
    }
}

/** Asks for the output folder. This must be done first, because the browser permits it only for a short time after a click. */
async function outputFolder() {
    try {
        return await showDirectoryPicker({ id: 'lockstep-output', mode: 'readwrite' });
    } catch (error) {
        throw error.name === 'AbortError' ? new Error('Choose a folder for the results.') : error;
    }
}

/** Returns the chosen files, each with the path of its result; the paths of the folders; the folders that cannot be listed; and the place of the results. */
async function inputs(action) {
    if (chosen('input') === 'files') {
        const files = [...byId('inputs').files];
        need(files.length, `Choose the files to ${action}.`);
        const item = (file) => {
            const result = resultPath(action, [file.name]) ?? [`${file.name}.decrypted`];
            return { path: [file.name], result, size: file.size, open: async () => file };
        };
        return { files: files.map(item), folders: [], failures: [], output: new Links() };
    }
    let found, output;
    if (hasPicker()) {
        need(folder, `Choose the folder to ${action}.`);
        const root = await outputFolder();
        if (await folder.isSameEntry(root)) throw new Error('The output folder is the input folder: choose another one.');
        output = new OutputFolder(root);
        found = await listFolder(folder, root).catch(cannotRead);
    } else {
        found = listField(byId('folder'));
        need(found.files.length, `Choose a folder to ${action} that contains files.`);
        output = new OutputArchive(found.name);
    }
    const files = found.files.map((item) => ({ ...item, result: resultPath(action, item.path) }));
    const which = action === 'encrypt' ? '' : ` whose name ends in ${SUFFIX}`;
    need(found.failures.length || files.some((file) => file.result), `The folder contains no file${which}. Nothing was written.`);
    return { files, folders: found.folders, failures: found.failures, output };
}

/** The content of a file as a stream. `progress` receives the length of each piece. */
function reading(file, progress) {
    const reader = file.stream().getReader();
    return new ReadableStream({
        async pull(controller) {
            const { done, value } = await reader.read().catch(cannotRead);
            if (done) return controller.close();
            progress(value.length);
            return controller.enqueue(value);
        },
        cancel: (cause) => reader.cancel(cause),
    }, { highWaterMark: 0 });
}

/** Processes a file. The result gets its name, or is offered, only after all of it has been written and its stream has been closed. */
async function processFile(action, keys, item, output, progress, signal) {
    const [file, target] = [await item.open().catch(cannotRead), await output.place(item.result)];
    try {
        const transform = action === 'encrypt' ? library.encryptStream({ keys }) : library.decryptStream({ keys });
        await reading(file, progress).pipeThrough(transform, { signal }).pipeTo(target.stream, { signal });
        await target.finish(file.lastModified);
    } catch (error) {
        await target.remove();
        throw error;
    }
}

/** Processes all files. Returns the number of files that have failed, and the number of folders that could not be read or made. */
async function processAll(action, keys, { files, folders, failures, output }, signal) {
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let done = 0;
    const bar = byId('files-progress');
    const progress = (bytes) => {
        done += bytes;
        bar.value = total ? done / total : 1;
    };
    const fails = async (path, work) => {
        try {
            signal.throwIfAborted();
            await work();
            return 0;
        } catch (error) {
            if (signal.aborted) throw error;
            result(element('span', { class: 'error' }, `${path.join('/')}: ${reason(error)}`));
            return 1;
        }
    };
    const failed = [0, 0];
    for (const { path, error } of failures) failed[1] += await fails(path, () => cannotRead(error));
    for (const path of folders) failed[1] += await fails(path, () => output.folder(path));
    for (const item of files) failed[0] += await fails(item.path, () => processFile(action, keys, item, output, progress, signal));
    return failed;
}

async function run(signal) {
    const action = chosen('action');
    const message = byId('files-message');
    const { files: all, folders, failures, output } = await inputs(action);
    signal.throwIfAborted();
    const files = all.filter((file) => file.result);
    const options = await keyOptions(action);
    say(message, 'Running.');
    let keys, failed, missing;
    try {
        keys = action === 'encrypt' ? await library.encryptionKeys(options) : library.decryptionKeys(options);
        signal.throwIfAborted();
        [failed, missing] = await processAll(action, keys, { files, folders, failures, output }, signal);
    } catch (error) {
        await output.discard?.();
        throw error;
    } finally {
        keys?.free();
        options.keyFile?.fill(0);
    }
    const what = (count, thing = 'file') => `${count} ${thing}${count === 1 ? '' : 's'}`;
    if (all.length > files.length) result(`${what(all.length - files.length)} skipped, because the names do not end in ${SUFFIX}.`);
    if (output instanceof OutputArchive && failed < files.length) {
        const blob = output.end();
        result(link(blob, output.name), ` ${size(blob.size)}`);
    }
    const [isSaved, verb] = [output instanceof OutputFolder, action === 'encrypt' ? 'encrypted' : 'decrypted and verified'];
    const done = `${what(files.length - failed)} ${verb}${isSaved ? ` into the folder ${output.name}` : ''}`;
    if (failed + missing) say(message, `${what(failed)}${missing ? ` and ${what(missing, 'folder')}` : ''} failed, ${done}. The reasons are in the list below.`, 'error');
    else say(message, `${done}.${isSaved ? '' : ' Save the results before you leave this page.'}`, 'good');
}

async function submit(event) {
    event.preventDefault();
    const [start, cancel, bar, message] = ['start', 'cancel', 'progress'].map((part) => byId(`files-${part}`)).concat(byId('files-message'));
    if (start.getAttribute('aria-disabled') === 'true') return;
    const control = new AbortController();
    cancel.onclick = () => control.abort();
    start.setAttribute('aria-disabled', 'true');
    [cancel.hidden, bar.hidden, bar.value] = [false, false, 0];
    const warn = (leaving) => leaving.preventDefault();
    addEventListener('beforeunload', warn);
    try {
        await run(control.signal);
    } catch (error) {
        if (control.signal.aborted) say(message, 'Cancelled. Unfinished results were removed.');
        else say(message, reason(error), 'error');
    } finally {
        removeEventListener('beforeunload', warn);
        start.removeAttribute('aria-disabled');
        [cancel.hidden, bar.hidden] = [true, true];
    }
}

/** Puts a file into a field, as if the visitor had chosen it. */
function choose(input, file) {
    const transfer = new DataTransfer();
    transfer.items.add(file);
    input.files = transfer.files;
}

function newKey() {
    const file = new File([library.generateKeyFile()], 'lockstep.key', { type: 'text/plain' });
    choose(byId('key-file'), file);
    result(link(file, file.name), ' Save the key file first. It is already chosen above.');
}

function newIdentity() {
    const { identity, recipient } = library.generateIdentity();
    const file = new File([`# public key: ${recipient}\n${identity}\n`], 'identity.txt', { type: 'text/plain' });
    const field = byId('recipients');
    field.value = [field.value.trim(), recipient].filter(Boolean).join('\n');
    result(link(file, file.name), ' Save the identity first. Its recipient is already entered above.');
}

export async function startFiles() {
    form().addEventListener('change', update);
    form().addEventListener('submit', submit);
    byId('new-key').addEventListener('click', newKey);
    byId('new-identity').addEventListener('click', newIdentity);
    byId('folder-choose').addEventListener('click', chooseFolder);
    [byId('folder-field').hidden, byId('folder-picker').hidden] = [hasPicker(), !hasPicker()];
    update();
    try {
        await Promise.all([load(), prepare()]);
        byId('files-start').disabled = false;
        byId('files-limit').textContent = (await isUnlimited())
            ? 'Files of any size that the disk has room for. Results stay in the browser’s storage until you save them and leave this page.'
            : 'This browser gives the page no storage: results are limited to 512 MiB.';
    } catch (error) {
        say(byId('files-message'), `Files cannot be processed: ${error.message}`, 'error');
    }
}
