// The keys of files: key files, passphrases, and identities with their recipients.

import { backends, bytes, call, compiledModule, failure, isNode, live } from './module.js';

/** Generates a key file. Returns its text as bytes. */
export function generateKeyFile() {
    return call((module) => {
        const key = module.FileKey.generate();
        try {
            return key.toText();
        } finally {
            key.free();
        }
    });
}

/** Generates an identity. Returns the identity and its recipient as texts. */
export function generateIdentity() {
    const [identity, recipient] = call((module) => module.generateIdentity());
    return { identity, recipient };
}

const ONE = 'give exactly one of';

/** Checks that the options contain exactly one of the kinds of keys in `names` or, if `several` is true, at least one of them. */
function given(options, names, several) {
    const found = names.filter((name) => options?.[name] !== undefined);
    if (found.length === 0 || (found.length > 1 && !several)) {
        throw failure('argument', several ? `give ${names.join(', ')}` : `${ONE} ${names.join(', ')}`);
    }
    const { passphrase } = options;
    if (passphrase !== undefined && (typeof passphrase !== 'string' || passphrase === '')) {
        throw failure('argument', 'the passphrase must be a string that is not empty');
    }
    for (const name of ['recipients', 'identities']) {
        const isList = Array.isArray(options[name]) && options[name].every((text) => typeof text === 'string');
        if (options[name] !== undefined && !isList) throw failure('argument', `${name} must be an array of strings`);
    }
    return found[0];
}

/** Copies the options of a decryption. The decryption uses its key later, when the caller may already have changed the original options. */
export function optionsForDecryption(options) {
    if (options?.keys !== undefined) return { keys: sharedKeys(options), backend: backends(options.backend) };
    given(options, ['keyFile', 'passphrase', 'identities'], true);
    const { backend, keyFile, passphrase, identities } = options;
    return {
        backend: backends(backend), passphrase, identities: identities?.slice(),
        keyFile: keyFile === undefined ? undefined : bytes(keyFile, 'keyFile').slice(),
    };
}

function fromBytes(key) {
    try {
        return call((module) => module.FileKey.fromBytes(key));
    } finally {
        key.fill(0);
    }
}

/** Copies a key: the caller frees the result. */
function copyOf(key) {
    return fromBytes(call(() => live(key).bytes()));
}

/**
 * The keys of several files. New files get the same key and the same envelope, and the keys of envelopes that were opened are kept. Therefore
 * a passphrase is processed once for all files that share an envelope.
 */
class FileKeys {
    // For encryption: the key and the envelope of new files.
    #made;
    // For decryption: the options, and a promise of the key of each envelope.
    #options;
    #opened = new Map();

    static async forEncryption(options) {
        const keys = new FileKeys();
        keys.#made = await keyForEncryption(withoutKeys(options));
        return keys;
    }

    static forDecryption(options) {
        const keys = new FileKeys();
        keys.#options = optionsForDecryption(withoutKeys(options));
        return keys;
    }

    /** Returns a copy of the key, and the envelope, of a new file. */
    ofNewFile() {
        if (this.#options) throw failure('argument', 'these keys are for decryption: make keys with encryptionKeys');
        return { key: copyOf(this.#made?.key), envelope: live(this.#made).envelope };
    }

    /** Returns a copy of the key of a file that begins with this envelope. */
    async ofFile(envelope) {
        if (this.#made) throw failure('argument', 'these keys are for encryption: make keys with decryptionKeys');
        // This decoder has a different character for each byte.
        const name = new TextDecoder('latin1').decode(envelope);
        if (!this.#opened.has(name)) {
            const opened = selectedKey(live(this.#options), envelope);
            this.#opened.set(name, opened);
            // A wrong key is not tried again. Other failures can be temporary, for example exhausted memory.
            opened.catch((error) => error.code === 'wrong-key' || this.#opened.delete(name));
        }
        return copyOf(await this.#opened.get(name));
    }

    /** Wipes the keys. Streams that have started still work. */
    free() {
        this.#made?.key.free();
        this.#options?.keyFile?.fill(0);
        for (const opened of this.#opened.values()) opened.then((key) => key.free(), () => {});
        this.#opened.clear();
        this.#made = this.#options = undefined;
    }
}

/** Returns the options. Throws an error if they contain the result of `encryptionKeys` or `decryptionKeys`. */
function withoutKeys(options) {
    if (options?.keys !== undefined) throw failure('argument', 'keys cannot be made from other keys: give a key file, a passphrase, recipients or identities');
    return options;
}

/** Prepares the encryption of several files. The options are those of `encryptStream`. */
export function encryptionKeys(options) {
    return FileKeys.forEncryption(options);
}

/** Prepares the decryption of several files. The options are those of `decryptStream`. */
export function decryptionKeys(options) {
    return FileKeys.forDecryption(options);
}

/** Returns the keys in the options, which exclude other kinds of keys. */
function sharedKeys({ keys, ...others }) {
    const isAlone = ['keyFile', 'passphrase', 'recipients', 'identities'].every((name) => others[name] === undefined);
    if (!(keys instanceof FileKeys) || !isAlone) throw failure('argument', 'keys must be the result of encryptionKeys or decryptionKeys, without other keys');
    return keys;
}

/** Returns the key and the envelope of a new file. */
export async function keyForEncryption(options) {
    if (options?.keys !== undefined) return sharedKeys(options).ofNewFile();
    const kind = given(options, ['keyFile', 'passphrase', 'recipients'], false);
    if (kind === 'keyFile') {
        const key = call((module) => module.FileKey.parse(bytes(options.keyFile, 'keyFile')));
        return { key, envelope: new Uint8Array(0) };
    }
    if (kind === 'recipients') {
        const [key, envelope] = call((module) => module.wrapForRecipients(options.recipients));
        return { key, envelope };
    }
    const { key, envelope } = await byPassphrase(undefined, [options.passphrase]);
    return { key: fromBytes(key), envelope };
}

/**
 * Returns the key of a file that begins with this envelope. If the file has no envelope, the argument is empty. `options` come from
 * `optionsForDecryption`. This function wipes the text of the key file in them.
 */
export async function keyForDecryption(options, envelope) {
    if (options.keys) return options.keys.ofFile(envelope);
    try {
        return await selectedKey(options, envelope);
    } finally {
        options.keyFile?.fill(0);
    }
}

async function selectedKey({ keyFile, passphrase, identities }, envelope) {
    if (envelope.length === 0) {
        if (keyFile === undefined) {
            throw failure('needs-key-file', 'this file is encrypted with a key file, or is not a Lockstep file: give the key file');
        }
        return call((module) => module.FileKey.parse(keyFile));
    }
    if (!call((module) => module.hasPassphrase(envelope))) {
        if (identities === undefined) {
            throw failure('needs-identity', 'this file is encrypted to recipients: give the identity of one of them');
        }
        return call((module) => module.unwrapByIdentities(envelope, identities));
    }
    if (passphrase === undefined) throw failure('needs-passphrase', 'this file is encrypted with a passphrase: give it');
    // Systems encode the same characters in different normal forms of Unicode.
    const forms = new Set([passphrase, passphrase.normalize('NFC'), passphrase.normalize('NFD')]);
    const { key } = await byPassphrase(envelope, [...forms]);
    return fromBytes(key);
}

/**
 * Unwraps the key of an envelope with the first of the passphrases that fits. Without an envelope, makes an envelope. The derivation takes
 * seconds and 256 MiB or more, and a module of WebAssembly never releases memory. Therefore a worker does this, and ends afterwards.
 */
async function byPassphrase(envelope, passphrases) {
    // If the module has stopped, this call throws the error before the work starts.
    call(() => undefined);
    const { answer } = await import('./passphrase.js');
    const request = { module: compiledModule(), envelope, passphrases };
    const worker = await startWorker();
    const result = worker ? await ask(worker, request) : await answer(request);
    if (result.error) throw failure(result.error.code, result.error.message);
    return result;
}

async function startWorker() {
    const url = new URL('./passphrase.js', import.meta.url);
    if (isNode) {
        const { Worker } = await import('node:worker_threads');
        return new Worker(url, { workerData: 'lockstep' });
    }
    try {
        return new Worker(url, { type: 'module', name: 'lockstep-passphrase' });
    } catch {
        // A policy of the page may forbid workers.
        return undefined;
    }
}

async function ask(worker, request) {
    const listen = (name, listener) => (isNode ? worker.once(name, listener) : worker.addEventListener(name, listener, { once: true }));
    try {
        return await new Promise((resolve, reject) => {
            listen('message', (message) => resolve(isNode ? message : message.data));
            const stopped = 'the passphrase cannot be processed: memory is exhausted, or the policy of the page forbids workers';
            listen('error', () => reject(failure('memory', stopped)));
            worker.postMessage(request);
        });
    } finally {
        worker.terminate();
    }
}
