// Encrypted files as streams.

import { CHUNK, ChunkCipher, HEADER, MOST, SEALED, envelopeLength, openingCipher } from './chunks.js';
import { keyForDecryption, keyForEncryption, optionsForDecryption } from './keys.js';
import { backends, bytes, call } from './module.js';

/** The maximum number of bytes that are processed at the same time. */
const IN_FLIGHT = 2 << 20;

/** The runs of chunks of a stream. Several runs are processed at the same time, and their results are enqueued in order. */
class Runs {
    #controller;
    #cipher;
    #unit;
    #next = 0;
    // The bytes that do not fill a run yet, and the number of these bytes.
    #rest;
    #filled = 0;
    #flight = [];
    #pending = 0;
    #last = Promise.resolve();

    constructor(controller, cipher, unit) {
        [this.#controller, this.#cipher, this.#unit] = [controller, cipher, unit];
    }

    /** Starts the processing of the full runs of the data so far, and keeps the other bytes. */
    async add(data) {
        if (this.#filled > 0) {
            const part = data.subarray(0, this.#rest.length - this.#filled);
            this.#rest.set(part, this.#filled);
            this.#filled += part.length;
            data = data.subarray(part.length);
            if (this.#filled < this.#rest.length) return;
            this.#filled = 0;
            await this.#start(this.#rest, false);
        }
        const most = MOST * this.#unit;
        while (data.length >= this.#least) {
            const run = data.subarray(0, Math.min(most, data.length - (data.length % this.#unit)));
            data = data.subarray(run.length);
            await this.#start(run, false);
        }
        if (data.length === 0) return;
        // A new buffer is needed, because work may still read the previous one.
        this.#rest = new Uint8Array(this.#least);
        this.#rest.set(data);
        this.#filled = data.length;
    }

    get #least() {
        return this.#cipher.least * this.#unit;
    }

    /** Processes the remaining bytes as the end of the message, and waits for all runs. */
    async end() {
        await this.#start(this.#filled > 0 ? this.#rest.subarray(0, this.#filled) : new Uint8Array(0), true);
        await this.#last;
    }

    async #start(run, ends) {
        const work = this.#cipher.run(this.#next, run, ends);
        this.#next += run.length / this.#unit;
        this.#pending += run.length;
        const earlier = this.#last;
        this.#last = (async () => {
            // Both promises are awaited at once, so that every failure is handled.
            const [, result] = await Promise.all([earlier, work]);
            if (result.length > 0) this.#controller.enqueue(result);
            this.#pending -= run.length;
        })();
        // The next `await` reports the failure to the writer. The controller reports it to the reader at once.
        this.#last.catch((error) => {
            this.#cipher.free();
            this.#controller.error(error);
        });
        this.#flight.push(this.#last);
        while (this.#pending > IN_FLIGHT || (this.#cipher.isMeasured && this.#flight.length > 0)) await this.#flight.shift();
    }
}

function stream(transformer) {
    return new TransformStream(transformer, undefined, { highWaterMark: 2 });
}

/** Encrypts a stream of bytes. */
export function encryptStream(options) {
    let cipher, runs;
    return stream({
        async start(controller) {
            const backend = backends(options?.backend);
            const { key, envelope } = await keyForEncryption(options);
            const chunks = newMessage(key, envelope);
            const header = call(() => chunks.header());
            cipher = await ChunkCipher.create(chunks, 'seal', backend);
            const start = new Uint8Array(envelope.length + header.length);
            start.set(envelope);
            start.set(header, envelope.length);
            controller.enqueue(start);
            runs = new Runs(controller, cipher, CHUNK);
        },
        transform: (data) => freeing(() => cipher, () => runs.add(bytes(data, 'a chunk of the stream'))),
        async flush() {
            await runs.end();
            cipher.free();
        },
        cancel: () => cipher?.free(),
    });
}

// Starts a new message, and wipes the key of the file.
function newMessage(key, envelope) {
    try {
        return call((module) => module.Chunks.create(key, envelope));
    } finally {
        key.free();
    }
}

// Runs a part of the work, and frees the cipher if it fails.
async function freeing(cipher, work) {
    try {
        await work();
    } catch (error) {
        cipher()?.free();
        throw error;
    }
}

/**
 * Decrypts a stream of bytes. Only verified plaintext is enqueued. Only the end of the stream shows that the message is complete. So if
 * the stream fails, discard all of its output.
 */
export function decryptStream(options) {
    let cipher, runs, keys;
    let head = new Uint8Array(0);
    async function add(controller, data, ends) {
        if (runs) return runs.add(data);
        const joined = new Uint8Array(head.length + data.length);
        joined.set(head);
        joined.set(data, head.length);
        head = joined;
        const length = envelopeLength(head, ends);
        if (length === undefined) return undefined;
        const key = await keyForDecryption(keys, head.subarray(0, length));
        cipher = await openingCipher(key, head, length, keys.backend);
        runs = new Runs(controller, cipher, SEALED);
        const body = head.subarray(length + HEADER);
        head = undefined;
        return runs.add(body);
    }
    return stream({
        // The options are copied before the call returns. If they are wrong, the stream fails.
        async start() {
            keys = optionsForDecryption(options);
        },
        transform: (data, controller) => freeing(() => cipher, () => add(controller, bytes(data, 'a chunk of the stream'), false)),
        async flush(controller) {
            if (!runs) await add(controller, new Uint8Array(0), true);
            await runs.end();
            cipher.free();
        },
        cancel: () => cipher?.free(),
    });
}
