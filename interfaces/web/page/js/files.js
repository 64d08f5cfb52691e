// The section "Encrypt and decrypt files".

import { byId, element, say, size } from './dom.js';
import { isUnlimited, place, prepare } from './storage.js';

const SUFFIX = '.enc';
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
    const [action, kind] = [chosen('action'), chosen('kind')];
    for (const part of form().querySelectorAll('[data-kind]')) part.hidden = part.dataset.kind !== kind;
    for (const part of form().querySelectorAll('[data-action]')) part.hidden = part.dataset.action !== action;
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
        return { keyFile: new Uint8Array(await file.arrayBuffer()) };
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
    return { identities: [await file.text()] };
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

const nameOf = (action, name) => {
    if (action === 'encrypt') return name + SUFFIX;
    return name.endsWith(SUFFIX) && name.length > SUFFIX.length ? name.slice(0, -SUFFIX.length) : `${name}.decrypted`;
};

function reason(error) {
    if (error.name === 'QuotaExceededError') return 'The browser’s storage for this page is full. Save and remove other results by reloading the page, or make room on the disk.';
    if (error.name === 'NotReadableError' || error.name === 'NotFoundError') return 'The file cannot be read. It may have been changed or removed after it was chosen: choose it again.';
    return error.message;
}

/** Processes a file. The result is offered only after all of it has been written and its stream has been closed. */
async function processFile(action, options, file, progress, signal) {
    const target = await place();
    try {
        const transform = action === 'encrypt' ? library.encryptStream(options) : library.decryptStream(options);
        const count = new TransformStream({
            transform(part, controller) {
                progress(part.length);
                controller.enqueue(part);
            },
        });
        await file.stream().pipeThrough(count, { signal }).pipeThrough(transform, { signal }).pipeTo(target.stream, { signal });
        const blob = await target.file();
        const name = nameOf(action, file.name);
        result(link(blob, name), ` ${size(blob.size)}`);
    } catch (error) {
        await target.remove();
        throw error;
    }
}

async function run(signal) {
    const [action, files] = [chosen('action'), [...byId('inputs').files]];
    const message = byId('files-message');
    need(files.length, `Choose the files to ${action}.`);
    const options = await keyOptions(action);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let done = 0;
    const bar = byId('files-progress');
    const progress = (bytes) => {
        done += bytes;
        bar.value = total ? done / total : 1;
    };
    say(message, 'Running.');
    let failures = 0;
    for (const file of files) {
        try {
            await processFile(action, options, file, progress, signal);
        } catch (error) {
            if (signal.aborted) throw error;
            failures += 1;
            result(element('span', { class: 'error' }, `${file.name}: ${reason(error)}`));
        }
    }
    options.keyFile?.fill(0);
    const verb = action === 'encrypt' ? 'encrypted' : 'decrypted and verified';
    const what = (count) => `${count} ${count === 1 ? 'file' : 'files'}`;
    if (failures) say(message, `${what(failures)} failed, ${files.length - failures} ${verb}. The reasons are in the list below.`, 'error');
    else say(message, `${what(files.length)} ${verb}. Save ${files.length === 1 ? 'it' : 'them'} before you leave this page.`, 'good');
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
