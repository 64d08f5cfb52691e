// Seals and opens runs of chunks by WebAssembly, by WebCrypto or, in Node, by `node:crypto`.

import { CHUNK, FIRST_LINE, HEADER, MAX_CHUNKS, SEALED, TAG, backends, bytes, call, failure, importKey, isNode, live, subtle } from './module.js';

/** The largest run, in chunks: 1 MiB of plaintext. */
export const MOST = 64;

// The first runs of real data are measured to choose between the backends. RUNS is the number of these runs, in which the backends take
// turns. LEAST is the number of chunks that a run needs to count. The best run of each backend counts, because the first runs wait for the
// compiler of the engine and for the threads of WebCrypto.
const RUNS = 8;
const LEAST = 4;

/** The choice of a backend for one direction. All streams share this choice. */
class Choice {
    #rates = { webcrypto: 0, wasm: 0 };
    #runs = 0;

    get isOpen() {
        return this.#runs < RUNS;
    }

    get backend() {
        if (this.isOpen) return this.#runs % 2 === 0 ? 'webcrypto' : 'wasm';
        return this.#rates.wasm > this.#rates.webcrypto ? 'wasm' : 'webcrypto';
    }

    record(backend, bytes, time) {
        if (bytes < LEAST * CHUNK || !this.isOpen) return;
        this.#rates[backend] = Math.max(this.#rates[backend], bytes / time);
        this.#runs += 1;
    }
}

const choices = { seal: new Choice(), open: new Choice() };

// `node:crypto`, or null if it cannot be used. Undefined until the first call of `nodeCrypto`.
let checked;

/**
 * Returns `node:crypto`, which the backend `auto` uses in place of WebCrypto. A chunk takes about the time that a call of WebCrypto takes on the
 * calling thread alone, and no time of other threads. Returns null in browsers, in versions of Node without `getBuiltinModule`, in Deno, where
 * WebCrypto is faster, and in other programs whose `node:crypto` does not work as that of Node.
 */
function nodeCrypto() {
    if (checked === undefined) {
        checked = null;
        try {
            const isUsable = isNode && !process.versions.deno && typeof setImmediate === 'function';
            const node = isUsable && process.getBuiltinModule('node:crypto');
            if (node && isCorrect(node)) checked = node;
        } catch {
            // A function is missing or refuses its arguments.
        }
    }
    return checked;
}

// Seals and opens a block of zeros with a key and a nonce of zeros: test case 14 of the specification of GCM (McGrew and Viega).
function isCorrect(node) {
    const key = nodeKey(node, new Uint8Array(32));
    const iv = new Uint8Array(12);
    const sealed = join(sealByNode(node, key, iv, new Uint8Array(16)), globalThis.Buffer.allocUnsafeSlow);
    const plain = openByNode(node, key, iv, sealed);
    return sealed.toString('hex') === 'cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919' && plain?.toString('hex') === '0'.repeat(32);
}

/** Makes a key of `node:crypto`, with the name of its cipher. */
function nodeKey(node, raw) {
    return { name: `aes-${8 * raw.length}-gcm`, key: node.createSecretKey(raw) };
}

/** Returns the ciphertext and the tag. */
function sealByNode(node, { name, key }, iv, plain) {
    const cipher = node.createCipheriv(name, key, iv);
    const body = cipher.update(plain);
    cipher.final();
    return [body, cipher.getAuthTag()];
}

/** Returns the plaintext, or undefined if the chunk is not authentic. */
function openByNode(node, { name, key }, iv, sealed) {
    const [body, tag] = [sealed.subarray(0, sealed.length - TAG), sealed.subarray(sealed.length - TAG)];
    const decipher = node.createDecipheriv(name, key, iv, { authTagLength: TAG }).setAuthTag(tag);
    const plain = decipher.update(body);
    try {
        decipher.final();
        return plain;
    } catch {
        plain.fill(0);
        return undefined;
    }
}

/** Seals or opens the chunks of one message. */
export class ChunkCipher {
    #chunks;
    #direction;
    #backend;
    #unit;
    // The key of WebCrypto, or the result of `nodeKey` if the module `node:crypto` is used.
    #key;
    #node;
    // The nonce of the message; and the parameters of a call of WebCrypto, with two views of the nonce in them. The tag has the default length.
    #nonce;
    #parameters;
    #iv;
    #ivBytes;

    /** Makes the cipher of the message `chunks`. The cipher owns it, even if this function fails. `direction` is `seal` or `open`. */
    static async create(chunks, direction, backend) {
        const cipher = new ChunkCipher();
        [cipher.#chunks, cipher.#direction, cipher.#backend] = [chunks, direction, backends(backend)];
        cipher.#unit = direction === 'seal' ? CHUNK : SEALED;
        if (cipher.#backend === 'wasm') return cipher;
        try {
            const nonce = call(() => chunks.nonce(0));
            cipher.#nonce = new DataView(nonce.buffer);
            // Node takes less time for a buffer than for a view.
            cipher.#parameters = { name: 'AES-GCM', iv: nonce.slice().buffer };
            cipher.#iv = new DataView(cipher.#parameters.iv);
            cipher.#ivBytes = new Uint8Array(cipher.#parameters.iv);
            if (cipher.#backend === 'auto') cipher.#node = nodeCrypto();
            const key = call(() => chunks.rawKey());
            try {
                const usages = [direction === 'seal' ? 'encrypt' : 'decrypt'];
                cipher.#key = cipher.#node ? nodeKey(cipher.#node, key) : await importKey(key, usages);
            } finally {
                key.fill(0);
            }
            return cipher;
        } catch (error) {
            cipher.free();
            throw error;
        }
    }

    /** True while the backends are measured. During this time, only one run may be processed at a time. */
    get isMeasured() {
        return this.#backend === 'auto' && choices[this.#direction].isOpen;
    }

    /** The minimum length of a run in chunks. While the backends are measured, a shorter run would not count. */
    get least() {
        return this.isMeasured ? LEAST : 1;
    }

    /**
     * Seals or opens a run whose first chunk has the number `first`. The run consists of `parts`, which are consecutive bytes of the message;
     * each part but the last one of a message consists of whole chunks. `ends` is true if the message ends with the run. Returns the results
     * in one or more pieces. The caller may change the parts when the call has returned its promise.
     */
    async run(first, parts, ends) {
        live(this.#chunks);
        const length = parts.reduce((sum, part) => sum + part.length, 0);
        if (first + Math.floor(length / this.#unit) + (ends ? 1 : 0) > MAX_CHUNKS) {
            throw failure('too-long', 'too long: the format holds at most 2^38 chunks (4 PiB less a byte); split the data');
        }
        if (this.#backend !== 'auto') return this.#by(this.#backend, first, parts, ends);
        const choice = choices[this.#direction];
        const backend = choice.backend;
        const blocks = backend === 'webcrypto' && this.#node;
        const start = performance.now();
        try {
            const result = await this.#by(backend, first, parts, ends);
            choice.record(backend, length, performance.now() - start);
            return result;
        } finally {
            // Between two runs, and before a failure is reported, the thread does its other work.
            if (blocks) await new Promise((resolve) => setImmediate(resolve));
        }
    }

    #by(backend, first, parts, ends) {
        // WebAssembly reports truncations.
        const isTruncated = this.#direction === 'open' && ends && parts.at(-1).length % SEALED < TAG;
        if (backend === 'webcrypto' && !isTruncated) {
            return this.#node ? this.#byNode(first, parts, ends) : this.#byWebCrypto(first, parts, ends);
        }
        return parts.map((part, index) => {
            const number = first;
            first += Math.floor(part.length / this.#unit);
            return call(() => this.#chunks[this.#direction](number, part, ends && index === parts.length - 1));
        });
    }

    // Calls `work` for each chunk, after the nonce in the parameters was set to that of the chunk.
    #each(first, parts, ends, work) {
        const unit = this.#unit;
        parts.forEach((part, index) => {
            // If the last part of a message consists of whole chunks, an empty chunk follows.
            const isLast = ends && index === parts.length - 1;
            for (let at = 0; at < part.length || (isLast && at === part.length); at += unit) {
                this.#setNonce(first);
                work(part.subarray(at, at + unit), first);
                first += 1;
            }
        });
    }

    // Returns each result as a piece of its own: to join the results would take a third of the time of the encryption.
    async #byWebCrypto(first, parts, ends) {
        const operation = this.#direction === 'seal' ? 'encrypt' : 'decrypt';
        const [webcrypto, parameters, key] = [subtle(), this.#parameters, this.#key];
        const work = [];
        this.#each(first, parts, ends, (chunk) => void work.push(webcrypto[operation](parameters, key, chunk)));
        try {
            return (await Promise.all(work)).map((piece) => new Uint8Array(piece));
        } catch (error) {
            if (operation === 'encrypt') throw error;
            throw damaged(first + (await Promise.allSettled(work)).findIndex(({ status }) => status === 'rejected'));
        }
    }

    // Returns one piece, because `node:crypto` computes a run at once.
    #byNode(first, parts, ends) {
        const pieces = [];
        this.#each(first, parts, ends, (chunk, number) => {
            if (this.#direction === 'seal') return pieces.push(...sealByNode(this.#node, this.#key, this.#ivBytes, chunk));
            const plain = openByNode(this.#node, this.#key, this.#ivBytes, chunk);
            if (!plain) throw damaged(number);
            return pieces.push(plain);
        });
        const piece = bytes(join(pieces, globalThis.Buffer.allocUnsafeSlow));
        // A result of its own memory can be transferred to another thread. A `Buffer` can be a part of a larger memory.
        return [piece.length === piece.buffer.byteLength ? piece : piece.slice()];
    }

    // Sets the nonce in the parameters to that of a chunk: the nonce of the message XOR the big-endian number of the chunk. WebCrypto copies
    // its parameters before its call returns.
    #setNonce(chunk) {
        this.#iv.setUint32(8, this.#nonce.getUint32(8) ^ (chunk >>> 0));
        this.#iv.setUint32(4, this.#nonce.getUint32(4) ^ Math.floor(chunk / 2 ** 32));
    }

    /** Wipes the key. */
    free() {
        this.#chunks?.free();
        this.#chunks = this.#key = this.#node = undefined;
    }
}

/**
 * Returns the length of the envelope in a file that begins with `start`, or undefined if more bytes of the file must be read first.
 * `isAll` is true if the file has no more bytes.
 */
export function envelopeLength(start, isAll) {
    const length = call((module) => module.envelopeLength(start));
    if (start.length >= length + HEADER) return length;
    if (!isAll) return undefined;
    // The envelope is cut off. If not even its first line is complete, the file could also be a bare message.
    if (start.length < length && start.length < FIRST_LINE) throw truncated(start.length);
    return Math.min(length, start.length);
}

/** Makes the cipher of the message in a file that begins with `start`. `length` is the length of the envelope. */
export async function openingCipher(key, start, length, backend) {
    try {
        const chunks = call((module) => module.Chunks.check(key, start.subarray(0, length), start.subarray(length)));
        return await ChunkCipher.create(chunks, 'open', backend);
    } finally {
        key.free();
    }
}

function damaged(chunk) {
    const from = `chunk ${chunk} (plaintext from byte ${chunk * CHUNK})`;
    return failure('damaged', `${from} is not authentic: the data were damaged, changed or cut off there; get an intact copy`);
}

/** Makes the error for encrypted data that end too early. */
export function truncated(length) {
    return failure('truncated', `the encrypted data end too early, after ${length} bytes: they were cut off; get a complete copy`);
}

/** Joins the pieces of a run. `allocate` returns an array of a length; its contents are overwritten. */
export function join(pieces, allocate = (length) => new Uint8Array(length)) {
    if (pieces.length === 1) return pieces[0];
    const all = allocate(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
        all.set(piece, at);
        at += piece.length;
    }
    return all;
}
