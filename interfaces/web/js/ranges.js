// Reads encrypted files with random access.

import { MOST, envelopeLength, join, openingCipher, truncated } from './chunks.js';
import { keyForDecryption, optionsForDecryption } from './keys.js';
import { CHUNK, HEADER, SEALED, call, failure, live } from './module.js';

/** The number of bytes that are read first. They are enough to recognise the formats of other programs. */
const START = 4096;

/** An encrypted file. Its header and its last chunk have been verified, and thus its length. */
class EncryptedFile {
    #source;
    #start;
    #length;
    #cipher;
    #size;

    static async open(source, options) {
        const keys = optionsForDecryption(options);
        const file = new EncryptedFile();
        let start = await source.read(0, Math.min(START, source.size));
        // The first 21 bytes of an envelope state the length of the envelope, and START is more than 21 bytes.
        const needed = call((module) => module.envelopeLength(start)) + HEADER;
        if (needed > start.length && start.length < source.size) start = await source.read(0, Math.min(needed, source.size));
        const length = envelopeLength(start, true);
        const key = await keyForDecryption(keys, start.subarray(0, length));
        file.#cipher = await openingCipher(key, start, length, keys.backend);
        [file.#source, file.#start, file.#length] = [source, length, source.size - length];
        try {
            file.#size = call((module) => module.plaintextLength(file.#length, length));
            await file.#open(Math.floor(file.#size / CHUNK), 1);
        } catch (error) {
            file.free();
            throw error;
        }
        return file;
    }

    /** The number of bytes of the plaintext. */
    get size() {
        return this.#size;
    }

    /** Reads at most `length` bytes of plaintext from an offset. Each chunk is verified. */
    async read(offset, length) {
        live(this.#cipher);
        if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0) {
            throw failure('argument', 'offset and length must be numbers of bytes');
        }
        const end = Math.min(offset + length, this.#size);
        const result = new Uint8Array(Math.max(end - offset, 0));
        for (let at = offset; at < end; ) {
            const first = Math.floor(at / CHUNK);
            const count = Math.min(Math.floor((end - 1) / CHUNK) - first + 1, MOST);
            const opened = await this.#open(first, count);
            const part = opened.subarray(at - first * CHUNK, end - first * CHUNK);
            result.set(part, at - offset);
            at += part.length;
        }
        return result;
    }

    // Reads and opens chunks.
    async #open(first, count) {
        const from = HEADER + first * SEALED;
        const length = Math.min(count * SEALED, this.#length - from);
        const data = await this.#source.read(this.#start + from, length);
        if (data.length < length) throw truncated(this.#start + from + data.length);
        return join(await live(this.#cipher).run(first, [data], from + length === this.#length));
    }

    /** Wipes the key. The object cannot be used afterwards. */
    free() {
        this.#cipher?.free();
        this.#cipher = undefined;
    }
}

/** Opens an encrypted file in a Blob. */
export function openBlob(blob, options) {
    const read = async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
    return EncryptedFile.open({ size: blob.size, read }, options);
}

/** Opens an encrypted file at a URL. The server must answer requests for ranges. */
export async function openUrl(url, options) {
    const first = await range(url, 0, START);
    const stated = first.headers.get('content-range')?.split('/')[1] ?? (await sizeByHead(url));
    const size = Number(stated);
    if (!Number.isSafeInteger(size)) throw failure('no-ranges', `the server does not state the size of ${url}: download the file`);
    const start = new Uint8Array(await first.arrayBuffer());
    const read = async (offset, length) => {
        if (length === 0) return new Uint8Array(0);
        if (offset + length <= start.length) return start.subarray(offset, offset + length);
        return new Uint8Array(await (await range(url, offset, length)).arrayBuffer());
    };
    return EncryptedFile.open({ size, read }, options);
}

async function range(url, offset, length) {
    const response = await fetch(url, { headers: { range: `bytes=${offset}-${offset + length - 1}` } });
    if (response.status === 206) return response;
    await response.body?.cancel();
    if (response.ok) throw failure('no-ranges', `the server of ${url} does not answer requests for ranges: download the file`);
    throw failure('http', `cannot read ${url}: the server answers ${response.status}`);
}

// Requests the size, because a server on another origin may hide the header Content-Range.
async function sizeByHead(url) {
    const response = await fetch(url, { method: 'HEAD' });
    return response.headers.get('content-length') ?? undefined;
}
