// Round keys and chaining states of AES, in the formats that the kernels read.

/** Doubles a byte in GF(2^8) (FIPS 197, section 4.2.1). */
const doubled = (byte) => ((byte << 1) ^ (byte & 0x80 ? 0x11b : 0)) & 0xff;

function times(a, b) {
    let sum = 0;
    for (let power = a; b > 0; b >>= 1, power = doubled(power)) sum ^= b & 1 ? power : 0;
    return sum;
}

/** The S-box (FIPS 197, section 5.1.1). 3 generates the nonzero bytes, and 0xf6 is its inverse. */
const SBOX = (() => {
    const table = new Uint8Array(256);
    const affine = (byte) => [1, 2, 3, 4].reduce((sum, by) => sum ^ (((byte << by) | (byte >> (8 - by))) & 0xff), byte ^ 0x63);
    table[0] = affine(0);
    for (let i = 0, power = 1, inverse = 1; i < 255; i++) {
        table[power] = affine(inverse);
        power = times(power, 3);
        inverse = times(inverse, 0xf6);
    }
    return table;
})();

/** Computes KeyExpansion (FIPS 197, section 5.2). Returns the round keys, 16 bytes each. */
export function expand(key) {
    const [words, rounds] = [key.length / 4, key.length / 4 + 6];
    const keys = new Uint8Array(16 * (rounds + 1));
    keys.set(key);
    for (let i = words, rcon = 1; i < 4 * (rounds + 1); i++) {
        let word = keys.slice(4 * i - 4, 4 * i);
        if (i % words === 0) {
            word = Uint8Array.of(SBOX[word[1]] ^ rcon, SBOX[word[2]], SBOX[word[3]], SBOX[word[0]]);
            rcon = doubled(rcon);
        } else if (words > 6 && i % words === 4) {
            word = word.map((byte) => SBOX[byte]);
        }
        for (let j = 0; j < 4; j++) keys[4 * i + j] = keys[4 * (i - words) + j] ^ word[j];
    }
    return keys;
}

/** Returns the round keys of the equivalent inverse cipher (FIPS 197, section 5.3.5), in the order of use. */
export function inverse(keys) {
    const rounds = keys.length / 16 - 1;
    const result = new Uint8Array(keys.length);
    for (let round = 0; round <= rounds; round++) {
        const key = keys.subarray(16 * (rounds - round), 16 * (rounds - round + 1));
        result.set(round === 0 || round === rounds ? key : inverseMixColumns(key), 16 * round);
    }
    return result;
}

function inverseMixColumns(block) {
    const factors = [14, 11, 13, 9];
    return block.map((_, at) => {
        const [column, row] = [at & ~3, at & 3];
        return factors.reduce((sum, factor, j) => sum ^ times(block[column + ((row + j) & 3)], factor), 0);
    });
}

/** Returns the round keys of `opengl/fixslice` as bit planes: see devices/opengl/src/fixslice/keys.rs. */
export function planes(keys, decrypts) {
    const rounds = keys.length / 16 - 1;
    const words = new Uint32Array(8 * (rounds + 1));
    for (let round = 0; round <= rounds; round++) {
        const number = decrypts ? rounds - round : round;
        const omitted = decrypts ? round : 4 - (round % 4);
        const turns = round === rounds ? 0 : omitted % 4;
        for (let at = 0; at < 16; at++) {
            const [column, row] = [at >> 2, at & 3];
            const byte = keys[16 * number + 4 * ((column + turns * row) % 4) + row];
            for (let plane = 0; plane < 8; plane++) {
                words[8 * round + plane] |= (((byte >> plane) & 1) * 3) << (8 * row + 2 * column);
            }
        }
    }
    return words;
}

const BLOCK = (1n << 128n) - 1n;

/** Converts a block to a number. The first byte of the block is the most significant. `blockOf` is the inverse function. */
export function numberOf(block) {
    return block.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}
export function blockOf(number) {
    return Uint8Array.from({ length: 16 }, (_, at) => Number((number >> BigInt(120 - 8 * at)) & 0xffn));
}

/** Returns the counter block after `count` blocks. The counter consists of the last `bits` bits of the block. */
export function counterAfter(block, count, bits = 128) {
    const modulus = (1n << BigInt(bits)) - 1n;
    const number = numberOf(block);
    return blockOf((number & ~modulus & BLOCK) | ((number + BigInt(count)) & modulus));
}

/** Returns the counter block of GCM-SIV after `count` blocks. Its first 32 bits are a little-endian counter (RFC 8452, section 4). */
export function littleCounterAfter(block, count) {
    const result = block.slice();
    const view = new DataView(result.buffer);
    view.setUint32(0, view.getUint32(0, true) + count, true);
    return result;
}

/** Returns the product of a tweak of XTS and x^`count` (IEEE 1619, section 5.2). The tweak is a little-endian number. */
export function tweakAfter(number, count) {
    for (let left = count; left > 0; left -= 64) {
        const by = BigInt(Math.min(left, 64));
        const top = number >> (128n - by);
        // x^128 = x^7 + x^2 + x + 1.
        number = ((number << by) & BLOCK) ^ top ^ (top << 1n) ^ (top << 2n) ^ (top << 7n);
    }
    return number;
}
export const littleBlockOf = (number) => blockOf(number).reverse();
export const littleNumberOf = (block) => numberOf(block.slice().reverse());
