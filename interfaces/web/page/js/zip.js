// ZIP archives without compression (APPNOTE 6.3.10), which hold the results of a folder where the browser cannot write folders.

// The table of CRC-32 for eight bytes at a time (slicing-by-8): row k has the CRC of a byte that k zero bytes follow.
const TABLES = Array.from({ length: 8 }, () => new Uint32Array(256));
for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    TABLES[0][byte] = crc;
}
for (let row = 1; row < 8; row++) {
    for (let byte = 0; byte < 256; byte++) TABLES[row][byte] = (TABLES[row - 1][byte] >>> 8) ^ TABLES[0][TABLES[row - 1][byte] & 255];
}

/** Continues a CRC-32 with further bytes. The first call gets 0. */
export function crc32(crc, bytes) {
    const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES;
    let [value, at] = [~crc, 0];
    for (; at + 8 <= bytes.length; at += 8) {
        value ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
        value = t7[value & 255] ^ t6[(value >>> 8) & 255] ^ t5[(value >>> 16) & 255] ^ t4[value >>> 24]
            ^ t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
    }
    for (; at < bytes.length; at++) value = (value >>> 8) ^ t0[(value ^ bytes[at]) & 255];
    return ~value >>> 0;
}

/** Encodes little-endian numbers: each argument is a value and its length of 1, 2, 4 or 8 bytes. */
function numbers(...fields) {
    const bytes = new Uint8Array(fields.reduce((sum, [, length]) => sum + length, 0));
    const view = new DataView(bytes.buffer);
    let at = 0;
    for (const [value, length] of fields) {
        if (length === 1) view.setUint8(at, value);
        else if (length === 2) view.setUint16(at, value, true);
        else if (length === 4) view.setUint32(at, value, true);
        else view.setBigUint64(at, BigInt(value), true);
        at += length;
    }
    return bytes;
}

const MOST_16 = 0xffff;
const MOST_32 = 0xffffffff;
// Version 4.5, which has ZIP64. Bit 11 states that names are UTF-8.
const VERSION = 45;
const UTF8 = 1 << 11;

/** The local time as MS-DOS stores it: years from 1980 on, and units of two seconds. */
function dosTime(date) {
    const year = Math.min(Math.max(date.getFullYear(), 1980), 2107) - 1980;
    const time = (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
    return [[time, 2], [(year << 9) | ((date.getMonth() + 1) << 5) | date.getDate(), 2]];
}

/** Encodes a path, an array of names, for an archive. Throws an error if an archive must not contain the path. */
export function encodePath(path) {
    // Programs on Windows take this character for a separator, so a name such as `..\x` could be unpacked outside of its folder.
    if (path.some((name) => name.includes('\\'))) throw new Error('the path contains a backslash, which archives must not contain: rename it');
    const name = new TextEncoder().encode(path.join('/'));
    if (name.length > MOST_16) throw new Error(`the path has more than ${MOST_16} bytes, which is too long for an archive: shorten it`);
    return name;
}

/**
 * Makes an archive of entries `{name, blob, crc, time}`; `name` is the result of `encodePath`, `time` is in milliseconds since 1970. The
 * archive refers to the blobs and does not copy them.
 */
export function archive(entries) {
    const [parts, directory] = [[], []];
    let at = 0;
    const add = (...pieces) => pieces.forEach((piece) => {
        parts.push(piece);
        at += piece.size ?? piece.length;
    });
    for (const { name, blob, crc, time } of entries) {
        const [size, offset] = [blob.size, at];
        const limited = [crc, size, size].map((value) => [Math.min(value, MOST_32), 4]);
        const common = [[VERSION, 2], [UTF8, 2], [0, 2], ...dosTime(new Date(time)), ...limited, [name.length, 2]];
        // The field "extended timestamp" of Info-ZIP has the time of the last change in seconds since 1970.
        const seconds = numbers([0x5455, 2], [5, 2], [1, 1], [Math.floor(time / 1000), 4]);
        const isLarge = size >= MOST_32;
        const sizes = isLarge ? [[size, 8], [size, 8]] : [];
        const extra = isLarge ? [numbers([1, 2], [16, 2], ...sizes)] : [];
        add(numbers([0x04034b50, 4], ...common, [seconds.length + (isLarge ? 20 : 0), 2]), name, seconds, ...extra, blob);
        const wide = [...sizes, ...(offset >= MOST_32 ? [[offset, 8]] : [])];
        const wideExtra = wide.length > 0 ? [numbers([1, 2], [8 * wide.length, 2], ...wide)] : [];
        const length = seconds.length + wideExtra.reduce((sum, bytes) => sum + bytes.length, 0);
        // The upper half of the attributes is the mode of Unix: a regular file.
        const attributes = 0o100644 * 65536;
        const tail = [[length, 2], [0, 2], [0, 2], [0, 2], [attributes, 4], [Math.min(offset, MOST_32), 4]];
        directory.push(numbers([0x02014b50, 4], [(3 << 8) | VERSION, 2], ...common, ...tail), name, seconds, ...wideExtra);
    }
    const start = at;
    // A call has a limited number of arguments.
    directory.forEach((piece) => add(piece));
    const [size, end, count] = [at - start, at, entries.length];
    if (count >= MOST_16 || end >= MOST_32) {
        const record = [[44, 8], [(3 << 8) | VERSION, 2], [VERSION, 2], [0, 4], [0, 4], [count, 8], [count, 8], [size, 8], [start, 8]];
        add(numbers([0x06064b50, 4], ...record), numbers([0x07064b50, 4], [0, 4], [end, 8], [1, 4]));
    }
    const [total, length, from] = [Math.min(count, MOST_16), Math.min(size, MOST_32), Math.min(start, MOST_32)];
    add(numbers([0x06054b50, 4], [0, 2], [0, 2], [total, 2], [total, 2], [length, 4], [from, 4], [0, 2]));
    return new Blob(parts, { type: 'application/zip' });
}
