// Encrypted files as streams.

import { CHUNK, ChunkCipher, HEADER, MOST, SEALED, openingCipher, truncated } from './chunks.js';
import { keyForDecryption, keyForEncryption } from './keys.js';
import { backends, bytes, call } from './module.js';

/** The bytes that are processed at the same time. */
const IN_FLIGHT = 2 << 20;

/** Runs of chunks on their way: processed at the same time, and enqueued in order. */
class Runs {
    #controller;
    #cipher;
    #unit;
    #next = 0;
    #rest;
    #filled = 0;
    #flight = [];
    #pending = 0;
    #last = Promise.resolve();

    constructor(controller, cipher, unit) {
        [this.#controller, this.#cipher, this.#unit, this.#rest] = [controller, cipher, unit, new Uint8Array(unit)];
    }

    /** Processes the full chunks of the data so far, and keeps the rest. */
    async add(data) {
        if (this.#filled > 0) {
            const part = data.subarray(0, this.#unit - this.#filled);
            this.#rest.set(part, this.#filled);
            this.#filled += part.length;
            data = data.subarray(part.length);
            if (this.#filled < this.#unit) return;
            this.#filled = 0;
            // The work may still read the buffer when the next bytes arrive.
            const chunk = this.#rest;
            this.#rest = new Uint8Array(this.#unit);
            await this.#start(chunk, false);
        }
        const most = MOST * this.#unit;
        while (data.length >= this.#unit) {
            const run = data.subarray(0, Math.min(most, data.length - (data.length % this.#unit)));
            data = data.subarray(run.length);
            await this.#start(run, false);
        }
        this.#rest.set(data);
        this.#filled = data.length;
    }

    /** Processes the last chunk, and waits for all. */
    async end() {
        await this.#start(this.#rest.subarray(0, this.#filled), true);
        await this.#last;
    }

    async #start(run, ends) {
        const work = this.#cipher.run(this.#next, run, ends);
        this.#next += run.length / this.#unit;
        this.#pending += run.length;
        const earlier = this.#last;
        this.#last = (async () => {
            // Both are awaited at once, so that no failure is unhandled.
            const [, result] = await Promise.all([earlier, work]);
            if (result.length > 0) this.#controller.enqueue(result);
            this.#pending -= run.length;
        })();
        // The failure is reported by the next `await`, and to the reader at once.
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
            backends(options?.backend);
            const { key, envelope } = await keyForEncryption(options);
            const chunks = call((module) => module.Chunks.create(key, envelope));
            key.free();
            const header = call(() => chunks.header());
            cipher = await ChunkCipher.create(chunks, 'seal', options.backend);
            const start = new Uint8Array(envelope.length + header.length);
            start.set(envelope);
            start.set(header, envelope.length);
            controller.enqueue(start);
            runs = new Runs(controller, cipher, CHUNK);
        },
        transform: (data) => runs.add(bytes(data, 'a chunk of the stream')),
        async flush() {
            await runs.end();
            cipher.free();
        },
        cancel: () => cipher?.free(),
    });
}

/**
 * Decrypts a stream of bytes. Only verified plaintext is enqueued. That the message is complete is known only at the end: if the
 * stream fails, discard what it has returned.
 */
export function decryptStream(options) {
    let cipher, runs;
    let head = new Uint8Array(0);
    async function add(controller, data, ends) {
        if (runs) return runs.add(data);
        const joined = new Uint8Array(head.length + data.length);
        joined.set(head);
        joined.set(data, head.length);
        head = joined;
        let length = call((module) => module.envelopeLength(head));
        if (!ends && head.length < length + HEADER) return undefined;
        if (ends && head.length < length) {
            // An envelope that is cut off; before its first line has ended, it could also be a bare message.
            if (head.length < 17) throw truncated(head.length);
            length = head.length;
        }
        const key = await keyForDecryption(options, head.subarray(0, length));
        cipher = await openingCipher(key, head, length, options.backend);
        runs = new Runs(controller, cipher, SEALED);
        const body = head.subarray(length + HEADER);
        head = undefined;
        return runs.add(body);
    }
    return stream({
        start() {
            backends(options?.backend);
        },
        transform: (data, controller) => add(controller, bytes(data, 'a chunk of the stream'), false),
        async flush(controller) {
            if (!runs) await add(controller, new Uint8Array(0), true);
            await runs.end();
            cipher.free();
        },
        cancel: () => cipher?.free(),
    });
}
