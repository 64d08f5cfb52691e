// AES of WebCrypto. Every result of a GPU is compared with it before the rate of the GPU is shown.
//
// WebCrypto has neither ECB nor XTS, CFB and OFB. But CBC decryption contains the inverse cipher of every block, and the cipher
// is a permutation: a ciphertext is correct if and only if the inverse cipher returns the plaintext.

export function xor(a, b) {
    const result = a.slice();
    for (let i = 0; i < result.length; i++) result[i] ^= b[i];
    return result;
}

export function equal(a, b) {
    return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

export function join(...parts) {
    const result = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
        result.set(part, at);
        at += part.length;
    }
    return result;
}

/** Returns random bytes. One call of WebCrypto returns at most 64 KiB. */
export function random(length) {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
    return bytes;
}

export class Reference {
    #key;

    /** Imports a key. WebCrypto is missing on pages without https, except on the local machine. */
    static async of(key) {
        if (!crypto.subtle) throw new Error('This page needs WebCrypto to check results. Open it by https or on localhost.');
        const reference = new Reference();
        reference.#key = {};
        for (const name of ['AES-CBC', 'AES-CTR', 'AES-GCM']) {
            reference.#key[name] = await crypto.subtle.importKey('raw', key, name, false, ['encrypt', 'decrypt']);
        }
        return reference;
    }

    async #run(operation, parameters, data) {
        return new Uint8Array(await crypto.subtle[operation](parameters, this.#key[parameters.name], data));
    }

    /** Encrypts in CBC mode without padding. */
    async cbcEncrypt(iv, data) {
        return (await this.#run('encrypt', { name: 'AES-CBC', iv }, data)).subarray(0, data.length);
    }

    async cbcDecrypt(iv, data) {
        // A block that decrypts to padding is appended, because WebCrypto requires it.
        const last = data.subarray(data.length - 16);
        const padding = await this.#run('encrypt', { name: 'AES-CBC', iv: last }, new Uint8Array(0));
        return this.#run('decrypt', { name: 'AES-CBC', iv }, join(data, padding));
    }

    ctr(counter, data, length = 128) {
        return this.#run('encrypt', { name: 'AES-CTR', counter, length }, data);
    }

    gcmSeal(iv, additionalData, data) {
        return this.#run('encrypt', { name: 'AES-GCM', iv, additionalData }, data);
    }

    /** Applies the cipher to one block. */
    encryptBlock(block) {
        return this.cbcEncrypt(new Uint8Array(16), block);
    }

    /** Applies the inverse cipher to each block. */
    async decryptBlocks(data) {
        const zero = new Uint8Array(16);
        return xor(await this.cbcDecrypt(zero, data), before(zero, data));
    }
}

/** Returns for each block the block before it. `first` is the block before the first one. */
export function before(first, data) {
    return join(first, data.subarray(0, data.length - 16));
}
