// The authenticated modes, on bytes.

import { backends, bytes, call, failure, subtle } from './module.js';

// From this length in bytes on, `sealAsync` and `openAsync` use WebCrypto: see docs/web.md. Shorter messages take less time in
// WebAssembly, since a call of WebCrypto takes 5 to 50 microseconds.
const WEBCRYPTO_FROM = 16384;

let table;

/** The modes: names and lengths in bytes. */
export function aeads() {
    table ??= JSON.parse(call((module) => module.aeads()), (_, value) => (value === null ? Infinity : value));
    return structuredClone(table);
}

// The strings of associated data as one string and, unless there is one string, their lengths.
function strings(aad) {
    if (aad === undefined || aad === null) return [new Uint8Array(0), undefined];
    if (!Array.isArray(aad)) return [bytes(aad, 'aad'), undefined];
    return join(aad.map((string) => bytes(string, 'aad')));
}

// Strings as one string, and their lengths.
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
    #backend;
    #imported;

    constructor(name, key, { tagLength = 16, backend } = {}) {
        this.#backend = backends(backend);
        this.#key = call((module) => new module.AeadKey(name, bytes(key, 'the key'), tagLength));
        [this.#name, this.#tag] = [name.toUpperCase(), tagLength];
    }

    /** Seals a message: returns ciphertext and tag as one string. */
    seal(nonce, aad, plaintext) {
        const [data, lengths] = strings(aad);
        return call(() => this.#key.seal(bytes(nonce, 'the nonce'), data, lengths, bytes(plaintext, 'the plaintext')));
    }

    /** Opens a message; throws an error with the code `not-authentic` unless it is authentic. */
    open(nonce, aad, sealed) {
        const [data, lengths] = strings(aad);
        return call(() => this.#key.open(bytes(nonce, 'the nonce'), data, lengths, bytes(sealed, 'the sealed message')));
    }

    /** Does the same as `seal`, and uses WebCrypto where it takes less time. */
    async sealAsync(nonce, aad, plaintext) {
        const parameters = await this.#parameters(nonce, aad, bytes(plaintext, 'the plaintext').length);
        if (!parameters) return this.seal(nonce, aad, plaintext);
        return new Uint8Array(await subtle().encrypt(parameters, await this.#imported, plaintext));
    }

    /** Does the same as `open`, and uses WebCrypto where it takes less time. */
    async openAsync(nonce, aad, sealed) {
        const parameters = await this.#parameters(nonce, aad, bytes(sealed, 'the sealed message').length);
        if (!parameters) return this.open(nonce, aad, sealed);
        try {
            return new Uint8Array(await subtle().decrypt(parameters, await this.#imported, sealed));
        } catch {
            throw failure('not-authentic', 'authentication failed: the data, the key, the nonce or the tag is wrong');
        }
    }

    // The parameters of WebCrypto; undefined if the message is for WebAssembly. Chromium has no keys of 24 bytes.
    async #parameters(nonce, aad, length) {
        if (this.#backend === 'wasm' || this.#name !== 'GCM' || this.#tag < 12) return undefined;
        if (this.#backend === 'auto' && length < WEBCRYPTO_FROM) return undefined;
        if (this.#imported === undefined) {
            const raw = call(() => this.#key.rawKey());
            const usages = ['encrypt', 'decrypt'];
            this.#imported = raw.length === 24 ? null : subtle().importKey('raw', raw, 'AES-GCM', false, usages);
        }
        if (this.#imported === null || bytes(nonce, 'the nonce').length === 0) return undefined;
        const [additionalData, lengths] = strings(aad);
        if (lengths !== undefined && lengths.length !== 1) return undefined;
        return { name: 'AES-GCM', iv: nonce, additionalData, tagLength: 8 * this.#tag };
    }

    /** Seals messages of the form `{nonce, aad, plaintext}`. */
    sealBatch(messages) {
        const batch = this.#batch(messages, 'plaintext');
        const sealed = call(() => this.#key.sealBatch(...batch.arguments));
        return split(sealed, batch.lengths.map((length) => length + this.#tag));
    }

    /** Opens messages of the form `{nonce, aad, sealed}`. The result has `null` in place of a message that is not authentic. */
    openBatch(messages) {
        const batch = this.#batch(messages, 'sealed');
        const [plain, done] = call(() => this.#key.openBatch(...batch.arguments));
        const opened = split(plain, batch.lengths.map((length) => length - this.#tag));
        return opened.map((message, index) => (done[index] ? message : null));
    }

    #batch(messages, field) {
        const column = (name) => join(messages.map((message) => bytes(message[name] ?? new Uint8Array(0), name)));
        const [nonces, aads, data] = [column('nonce'), column('aad'), column(field)];
        const lengths = new Uint32Array(3 * messages.length);
        [nonces, aads, data].forEach(([, list], column) => list.forEach((length, row) => (lengths[3 * row + column] = length)));
        return { arguments: [nonces[0], aads[0], data[0], lengths], lengths: Array.from(data[1]) };
    }

    /** Wipes the key. The object cannot be used afterwards. */
    free() {
        this.#key.free();
        this.#imported = undefined;
    }
}

function split(all, lengths) {
    let end = 0;
    return lengths.map((length) => all.subarray(end, (end += length)));
}

/** A key of an authenticated mode, by the name of the mode. */
export function aead(name, key, options) {
    return new Aead(name, key, options);
}
