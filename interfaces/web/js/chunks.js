// Seals and opens runs of chunks by WebAssembly or by WebCrypto.

import { backends, call, failure, importKey, live, subtle } from './module.js';

export const CHUNK = 16384;
export const TAG = 16;
export const SEALED = CHUNK + TAG;
export const HEADER = 56;
const MAX_CHUNKS = 2 ** 38;
/** The length of the first line of an envelope. */
const FIRST_LINE = 17;

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
    #key;
    #nonce;

    /** Makes the cipher of the message `chunks`. The cipher owns it, even if this function fails. `direction` is `seal` or `open`. */
    static async create(chunks, direction, backend) {
        const cipher = new ChunkCipher();
        [cipher.#chunks, cipher.#direction, cipher.#backend] = [chunks, direction, backends(backend)];
        if (cipher.#backend === 'wasm') return cipher;
        try {
            cipher.#nonce = call(() => chunks.nonce(0));
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

    /** Seals or opens a run whose first chunk has the number `first`. `ends` is true if the message ends with the run. */
    async run(first, data, ends) {
        live(this.#chunks);
        const unit = this.#direction === 'seal' ? CHUNK : SEALED;
        if (first + Math.floor(data.length / unit) + (ends ? 1 : 0) > MAX_CHUNKS) {
            throw failure('too-long', 'too long: the format holds at most 2^38 chunks (4 PiB less a byte); split the data');
        }
        if (this.#backend !== 'auto') return this.#by(this.#backend, first, data, ends);
        const choice = choices[this.#direction];
        const backend = choice.backend;
        if (!choice.isOpen) return this.#by(backend, first, data, ends);
        const start = performance.now();
        const result = await this.#by(backend, first, data, ends);
        choice.record(backend, data.length, performance.now() - start);
        return result;
    }

    #by(backend, first, data, ends) {
        if (backend === 'webcrypto') return this.#byWebCrypto(first, data, ends);
        return call(() => this.#chunks[this.#direction](first, data, ends));
    }

    async #byWebCrypto(first, data, ends) {
        const seals = this.#direction === 'seal';
        const [from, to] = seals ? [CHUNK, SEALED] : [SEALED, CHUNK];
        const count = Math.floor(data.length / from) + (ends ? 1 : 0);
        if (!seals && ends && data.length % SEALED < TAG) {
            // WebAssembly reports the truncation.
            return call(() => this.#chunks.open(first, data, true));
        }
        const result = new Uint8Array(data.length + (seals ? count : -count) * TAG);
        const work = Array.from({ length: count }, async (_, index) => {
            const parameters = { name: 'AES-GCM', iv: this.#nonceOf(first + index), tagLength: 8 * TAG };
            const part = data.subarray(index * from, (index + 1) * from);
            const done = await (seals ? subtle().encrypt(parameters, this.#key, part) : this.#open(parameters, part, first + index));
            result.set(new Uint8Array(done), index * to);
        });
        await Promise.all(work);
        return result;
    }

    async #open(parameters, part, chunk) {
        try {
            return await subtle().decrypt(parameters, this.#key, part);
        } catch {
            const from = `chunk ${chunk} (plaintext from byte ${chunk * CHUNK})`;
            throw failure('damaged', `${from} is not authentic: the data were damaged, changed or cut off there; get an intact copy`);
        }
    }

    // Returns the nonce of a chunk: the nonce of the message XOR the big-endian number of the chunk.
    #nonceOf(chunk) {
        const nonce = this.#nonce.slice();
        const view = new DataView(nonce.buffer);
        view.setUint32(8, view.getUint32(8) ^ (chunk >>> 0));
        view.setUint32(4, view.getUint32(4) ^ Math.floor(chunk / 2 ** 32));
        return nonce;
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
