// Encrypted files as streams.

import { ChunkCipher, MOST, envelopeLength, join, openingCipher } from './chunks.js';
import { keyForDecryption, keyForEncryption, optionsForDecryption } from './keys.js';
import { CHUNK, HEADER, SEALED, backends, bytes, call } from './module.js';

/**
 * A stream starts another run only if at most this number of bytes are processed or wait for the reader. It is less than a run of the greatest
 * length, so there is one such run at a time: with two, the engine moves more objects when it collects garbage, and more memory is in use.
 */
const IN_FLIGHT = 0.75 * 2 ** 20;

/** The number of results that a fast reader gets for a request. The time that it takes for them is measured. */
const GROUP = 16;

/** A reader is slow if it takes more time than this for a result, in milliseconds. A reader in memory takes some microseconds. */
const SLOW = 0.1;

/** The number of consecutive requests of a slow reader, after which results are joined. A few of them can be pauses of the engine. */
const SLOW_REQUESTS = 8;

/**
 * A pair of a writable and a readable stream with the behaviour of a `TransformStream`, and one addition: a slow reader, for example a file,
 * gets results that are joined to pieces of up to 64 chunks. Other readers get each result as it is, since joining takes a third of the
 * time of the encryption.
 */
class Pair {
    #reader;
    #writer;
    #free;
    // The results that wait for the reader, and their length in bytes.
    #results = [];
    #waiting = 0;
    // The time and the number of the results that the reader got last.
    #time = 0;
    #count = 0;
    #slowRequests = 0;
    // Ends the request of a reader for which there are no results yet.
    #answer;
    // Ends the wait of a writer.
    #wake;
    #isEnded = false;
    #failed;

    /** `write` is called with each piece of data, and `end` after the last one. `free` is called at every end. */
    constructor({ start, write, end, free }) {
        this.#free = free;
        this.readable = new ReadableStream({
            start: (controller) => void (this.#reader = controller),
            pull: () => this.#pull(),
            cancel: (reason) => this.fail(reason),
        }, { highWaterMark: 0 });
        this.writable = new WritableStream({
            start: (controller) => {
                this.#writer = controller;
                // Ends the wait of a writer, whereas `abort` is called only after this wait.
                controller.signal?.addEventListener('abort', () => this.#stop(controller.signal.reason));
                return this.#run(start);
            },
            write: (data) => this.#run(() => write(bytes(data, 'a chunk of the stream'))),
            close: () => this.#run(async () => {
                await end();
                free();
                this.#isEnded = true;
                if (this.#waiting === 0) this.#close();
            }),
            abort: (reason) => this.#stop(reason),
        }, { highWaterMark: 2 });
    }

    async #run(work) {
        try {
            await work();
        } catch (error) {
            this.fail(error);
            throw error;
        }
        // Frees what the work has made since the failure.
        if (this.#failed) this.#free();
    }

    /** The length of the results that wait for the reader, in bytes. */
    get waiting() {
        return this.#waiting;
    }

    /** Passes results to the reader. */
    put(results) {
        if (this.#failed) return;
        for (const result of results) {
            if (result.length === 0) continue;
            this.#results.push(result);
            this.#waiting += result.length;
        }
        if (this.#answer && this.#waiting > 0) {
            this.#deliver();
            this.#answer();
            this.#answer = undefined;
        }
        this.#wake?.();
    }

    /** Waits until a condition is true. The condition is checked when results were passed or taken. */
    async until(isTrue) {
        while (!this.#failed && !isTrue()) await new Promise((resolve) => (this.#wake = resolve));
        if (this.#failed) throw this.#failed.reason;
    }

    /** Reports a failure to the reader and to the writer. */
    fail(reason) {
        if (this.#failed) return;
        this.#stop(reason);
        this.#writer.error(reason);
    }

    // Reports a failure to the reader. The writer knows it.
    #stop(reason) {
        if (this.#failed) return;
        this.#failed = { reason };
        this.#free();
        this.#results = [];
        this.#reader.error(reason);
        this.#answer?.();
        this.#wake?.();
    }

    get #isSlow() {
        return this.#slowRequests >= SLOW_REQUESTS;
    }

    #pull() {
        if (!this.#isSlow && this.#count > 0) {
            const time = performance.now() - this.#time;
            this.#slowRequests = time > SLOW * this.#count ? this.#slowRequests + 1 : 0;
        }
        if (this.#waiting === 0) return new Promise((resolve) => (this.#answer = resolve));
        this.#deliver();
        if (this.#isEnded && this.#waiting === 0) this.#close();
        this.#wake?.();
        return undefined;
    }

    // Gives the reader a group of results or, if it is slow, a joined piece.
    #deliver() {
        const most = this.#isSlow ? MOST : GROUP;
        let [count, length] = [0, 0];
        do length += this.#results[count++].length;
        while (count < Math.min(this.#results.length, most) && length + this.#results[count].length <= MOST * SEALED);
        this.#waiting -= length;
        const results = this.#results.splice(0, count);
        const pieces = this.#isSlow ? [join(results)] : results;
        pieces.forEach((piece) => this.#reader.enqueue(piece));
        [this.#time, this.#count] = [performance.now(), pieces.length];
    }

    #close() {
        this.#reader.close();
        this.#answer?.();
    }
}

/** The runs of chunks of a stream. Several short runs, but only one of the greatest length, may be in progress (`IN_FLIGHT`). Results are
 * enqueued in order. */
class Runs {
    #pair;
    #cipher;
    #unit;
    #next = 0;
    // The bytes that do not fill a run yet, and the number of these bytes.
    #rest;
    #filled = 0;
    #pending = 0;
    #last = Promise.resolve();

    constructor(pair, cipher, unit) {
        [this.#pair, this.#cipher, this.#unit] = [pair, cipher, unit];
    }

    /** Starts the processing of the full runs of the data so far, and keeps the other bytes. */
    async add(data) {
        const parts = [];
        if (this.#filled > 0) {
            const part = data.subarray(0, this.#rest.length - this.#filled);
            this.#rest.set(part, this.#filled);
            this.#filled += part.length;
            data = data.subarray(part.length);
            if (this.#filled < this.#rest.length) return;
            this.#filled = 0;
            parts.push(this.#rest);
        }
        while (parts.length > 0 || data.length >= this.#least) {
            if (data.length >= this.#least) {
                const most = MOST * this.#unit - (parts[0]?.length ?? 0);
                const part = data.subarray(0, Math.min(most, data.length - (data.length % this.#unit)));
                data = data.subarray(part.length);
                parts.push(part);
            }
            await this.#start(parts.splice(0), false);
        }
        if (data.length === 0) return;
        if (this.#rest?.length !== this.#least) this.#rest = new Uint8Array(this.#least);
        this.#rest.set(data);
        this.#filled = data.length;
    }

    get #least() {
        return this.#cipher.least * this.#unit;
    }

    /** Processes the remaining bytes as the end of the message, and waits for all runs. */
    async end() {
        await this.#start([this.#filled > 0 ? this.#rest.subarray(0, this.#filled) : new Uint8Array(0)], true);
        await this.#last;
    }

    async #start(parts, ends) {
        const length = parts.reduce((sum, part) => sum + part.length, 0);
        const work = this.#cipher.run(this.#next, parts, ends);
        this.#next += length / this.#unit;
        this.#pending += length;
        const earlier = this.#last;
        this.#last = (async () => {
            // Both promises are awaited at once, so that every failure is handled.
            const [, pieces] = await Promise.all([earlier, work]);
            this.#pending -= length;
            this.#pair.put(pieces);
        })();
        this.#last.catch((error) => this.#pair.fail(error));
        const isFull = () => this.#pending + this.#pair.waiting > IN_FLIGHT || (this.#cipher.isMeasured && this.#pending > 0);
        await this.#pair.until(() => !isFull());
    }
}

/** Encrypts a stream of bytes. */
export function encryptStream(options) {
    let cipher, runs;
    const pair = new Pair({
        async start() {
            const backend = backends(options?.backend);
            const { key, envelope } = await keyForEncryption(options);
            const chunks = newMessage(key, envelope);
            const header = call(() => chunks.header());
            cipher = await ChunkCipher.create(chunks, 'seal', backend);
            pair.put([join([envelope, header])]);
            runs = new Runs(pair, cipher, CHUNK);
        },
        write: (data) => runs.add(data),
        end: () => runs.end(),
        free: () => cipher?.free(),
    });
    return pair;
}

// Starts a new message, and wipes the key of the file.
function newMessage(key, envelope) {
    try {
        return call((module) => module.Chunks.create(key, envelope));
    } finally {
        key.free();
    }
}

/**
 * Decrypts a stream of bytes. Only verified plaintext is released. Only the end of the stream shows that the message is complete. So if the
 * stream fails, discard all of its output.
 */
export function decryptStream(options) {
    let cipher, runs, keys;
    let head = new Uint8Array(0);
    async function add(data, ends) {
        if (runs) return runs.add(data);
        head = join([head, data]);
        const length = envelopeLength(head, ends);
        if (length === undefined) return undefined;
        const key = await keyForDecryption(keys, head.subarray(0, length));
        cipher = await openingCipher(key, head, length, keys.backend);
        runs = new Runs(pair, cipher, SEALED);
        const body = head.subarray(length + HEADER);
        head = undefined;
        return runs.add(body);
    }
    const pair = new Pair({
        // The options are copied before the call returns. If they are wrong, the stream fails.
        async start() {
            keys = optionsForDecryption(options);
        },
        write: (data) => add(data, false),
        async end() {
            if (!runs) await add(new Uint8Array(0), true);
            await runs.end();
        },
        free: () => cipher?.free(),
    });
    return pair;
}
