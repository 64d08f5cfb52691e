// The authenticated modes for data in memory.

import { backends, bytes, call, failure, importKey, live, subtle } from './module.js';

// From this length in bytes on, `sealAsync` and `openAsync` use WebCrypto: see docs/web.md. Shorter messages take less time in
// WebAssembly, since a call of WebCrypto takes 20 to 200 microseconds.
const WEBCRYPTO_FROM = 24576;

let table;

/** Returns the modes with their names and their lengths in bytes. */
export function aeads() {
    table ??= JSON.parse(call((module) => module.aeads()), (_, value) => (value === null ? Infinity : value));
    return structuredClone(table);
}

// Returns the strings of associated data as one concatenated string. If there are several strings, also returns their lengths.
function strings(aad) {
    if (aad === undefined || aad === null) return [new Uint8Array(0), undefined];
    if (!Array.isArray(aad)) return [bytes(aad, 'aad'), undefined];
    return join(aad.map((string) => bytes(string, 'aad')));
}

// Concatenates strings. Returns the result and the lengths of the strings.
function join(list) {
    const lengths = Uint32Array.from(list, (item) => item.length);
    const all = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
    let at = 0;
    for (const item of list) {
        all.set(item, at);
        at += item.length;
    }
    return [all, lengths];
}

/** A key of an authenticated mode. */
class Aead {
    #key;
    #name;
    #tag;
    #keyLength;
    #backend;
    // The import of the key into WebCrypto: `#importing` is its promise, and `#imported` is its result.
    #importing;
    #imported;

    constructor(name, key, { tagLength = 16, backend } = {}) {
        if (typeof name !== 'string') throw failure('argument', 'the name of the mode must be a string');
        if (!Number.isInteger(tagLength) || tagLength < 0 || tagLength > 16) {
            throw failure('argument', 'tagLength must be a number of bytes, at most 16');
        }
        this.#backend = backends(backend);
        this.#key = call((module) => new module.AeadKey(name, bytes(key, 'the key'), tagLength));
        [this.#name, this.#tag, this.#keyLength] = [name.toUpperCase(), tagLength, bytes(key, 'the key').length];
    }

    /** Seals a message. Returns the ciphertext and the tag as one string. */
    seal(nonce, aad, plaintext) {
        const [data, lengths] = strings(aad);
        return call(() => live(this.#key).seal(bytes(nonce, 'the nonce'), data, lengths, bytes(plaintext, 'the plaintext')));
    }

    /** Opens a message. Throws an error with the code `not-authentic` unless the message is authentic. */
    open(nonce, aad, sealed) {
        const [data, lengths] = strings(aad);
        return call(() => live(this.#key).open(bytes(nonce, 'the nonce'), data, lengths, bytes(sealed, 'the sealed message')));
    }

    /** Does the same as `seal`, but uses WebCrypto if this takes less time. After the call has returned, the arguments may be changed. */
    async sealAsync(nonce, aad, plaintext) {
        const parameters = this.#parameters(nonce, aad, bytes(plaintext, 'the plaintext').length);
        if (!parameters) return this.seal(nonce, aad, plaintext);
        // WebCrypto copies its arguments before its call returns. While its key is still being imported, they are copied here.
        const data = this.#imported ? plaintext : bytes(plaintext, 'the plaintext').slice();
        const key = this.#imported ?? (await this.#import());
        return new Uint8Array(await subtle().encrypt(parameters, key, data));
    }

    /** Does the same as `open`, but uses WebCrypto if this takes less time. After the call has returned, the arguments may be changed. */
    async openAsync(nonce, aad, sealed) {
        const parameters = this.#parameters(nonce, aad, bytes(sealed, 'the sealed message').length);
        if (!parameters) return this.open(nonce, aad, sealed);
        const data = this.#imported ? sealed : bytes(sealed, 'the sealed message').slice();
        const key = this.#imported ?? (await this.#import());
        try {
            return new Uint8Array(await subtle().decrypt(parameters, key, data));
        } catch {
            throw failure('not-authentic', 'authentication failed: the data, the key, the nonce or the tag is wrong');
        }
    }

    // Returns copies of the parameters for WebCrypto, or undefined if the message is for WebAssembly. Chromium has no keys of 24 bytes.
    #parameters(nonce, aad, length) {
        live(this.#key);
        if (this.#backend === 'wasm' || this.#name !== 'GCM' || this.#tag < 12 || this.#keyLength === 24) return undefined;
        if (this.#backend === 'auto' && length < WEBCRYPTO_FROM) return undefined;
        if (bytes(nonce, 'the nonce').length === 0) return undefined;
        const [additionalData, lengths] = strings(aad);
        if (lengths !== undefined && lengths.length !== 1) return undefined;
        return { name: 'AES-GCM', iv: bytes(nonce).slice(), additionalData: additionalData.slice(), tagLength: 8 * this.#tag };
    }

    async #import() {
        this.#importing ??= importKey(call(() => this.#key.rawKey()), ['encrypt', 'decrypt']);
        const key = await this.#importing;
        if (this.#key) this.#imported = key;
        return key;
    }

    /** Seals messages of the form `{nonce, aad, plaintext}`. */
    sealBatch(messages) {
        const batch = this.#batch(messages, 'plaintext');
        const sealed = call(() => live(this.#key).sealBatch(...batch.arguments));
        return split(sealed, batch.lengths.map((length) => length + this.#tag));
    }

    /** Opens messages of the form `{nonce, aad, sealed}`. For a message that is not authentic, the result contains `null`. */
    openBatch(messages) {
        const batch = this.#batch(messages, 'sealed');
        const [plain, done] = call(() => live(this.#key).openBatch(...batch.arguments));
        const opened = split(plain, batch.lengths.map((length) => Math.max(length - this.#tag, 0)));
        return opened.map((message, index) => (done[index] ? message : null));
    }

    #batch(messages, field) {
        if (!Array.isArray(messages)) throw failure('argument', `give an array of messages {nonce, aad, ${field}}`);
        const column = (name, absent) => join(messages.map((message) => bytes(message?.[name] ?? absent, name)));
        const none = new Uint8Array(0);
        const [nonces, aads, data] = [column('nonce', none), column('aad', none), column(field)];
        const lengths = new Uint32Array(3 * messages.length);
        [nonces, aads, data].forEach(([, list], column) => list.forEach((length, row) => (lengths[3 * row + column] = length)));
        return { arguments: [nonces[0], aads[0], data[0], lengths], lengths: Array.from(data[1]) };
    }

    /** Wipes the key. The object cannot be used afterwards. */
    free() {
        this.#key?.free();
        this.#key = this.#importing = this.#imported = undefined;
    }
}

function split(all, lengths) {
    let end = 0;
    return lengths.map((length) => all.subarray(end, (end += length)));
}

/** Makes a key of the authenticated mode with this name. */
export function aead(name, key, options) {
    return new Aead(name, key, options);
}
