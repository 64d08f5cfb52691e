// Seals and opens runs of chunks by WebAssembly or by WebCrypto.

import { CHUNK, FIRST_LINE, HEADER, MAX_CHUNKS, SEALED, TAG, backends, call, failure, importKey, live, subtle } from './module.js';

/** The largest run, in chunks: 1 MiB. */
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

/** Seals or opens the chunks of one message. */
export class ChunkCipher {
    #chunks;
    #direction;
    #backend;
    #unit;
    #key;
    // The nonce of the message; and the parameters of a call of WebCrypto, with a view of the nonce in them. The tag has the default length.
    #nonce;
    #parameters;
    #iv;

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
            cipher.#key = await importKey(call(() => chunks.rawKey()), [direction === 'seal' ? 'encrypt' : 'decrypt']);
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
        if (!choice.isOpen) return this.#by(backend, first, parts, ends);
        const start = performance.now();
        const result = await this.#by(backend, first, parts, ends);
        choice.record(backend, length, performance.now() - start);
        return result;
    }

    // Calls `work` for each part with the number of the first chunk, the part, and true if the message ends with the part.
    #each(first, parts, ends, work) {
        parts.forEach((part, index) => {
            work(first, part, ends && index === parts.length - 1);
            first += Math.floor(part.length / this.#unit);
        });
    }

    #by(backend, first, parts, ends) {
        // WebAssembly reports truncations.
        const isTruncated = this.#direction === 'open' && ends && parts.at(-1).length % SEALED < TAG;
        if (backend === 'webcrypto' && !isTruncated) return this.#byWebCrypto(first, parts, ends);
        const pieces = [];
        this.#each(first, parts, ends, (...part) => pieces.push(call(() => this.#chunks[this.#direction](...part))));
        return pieces;
    }

    // Each result of WebCrypto is a piece of its own: joining the results would take a third of the time of the encryption.
    async #byWebCrypto(first, parts, ends) {
        const operation = this.#direction === 'seal' ? 'encrypt' : 'decrypt';
        const [webcrypto, parameters, key, unit] = [subtle(), this.#parameters, this.#key, this.#unit];
        const work = [];
        this.#each(first, parts, ends, (number, part, isLast) => {
            // If the last part of a message consists of whole chunks, an empty chunk follows.
            for (let at = 0; at < part.length || (isLast && at === part.length); at += unit) {
                this.#setNonce(number++);
                work.push(webcrypto[operation](parameters, key, part.subarray(at, at + unit)));
            }
        });
        try {
            return (await Promise.all(work)).map((piece) => new Uint8Array(piece));
        } catch (error) {
            if (operation === 'encrypt') throw error;
            const chunk = first + (await Promise.allSettled(work)).findIndex(({ status }) => status === 'rejected');
            const from = `chunk ${chunk} (plaintext from byte ${chunk * CHUNK})`;
            throw failure('damaged', `${from} is not authentic: the data were damaged, changed or cut off there; get an intact copy`);
        }
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
        this.#chunks = this.#key = undefined;
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

/** Makes the error for encrypted data that end too early. */
export function truncated(length) {
    return failure('truncated', `the encrypted data end too early, after ${length} bytes: they were cut off; get a complete copy`);
}

/** Joins the pieces of a run. */
export function join(pieces) {
    if (pieces.length === 1) return pieces[0];
    const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
        all.set(piece, at);
        at += piece.length;
    }
    return all;
}
