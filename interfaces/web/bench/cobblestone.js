// Compares streams of chunked encryption with the AES-GCM of WebCrypto alone and of `node:crypto` alone, in chunks of 16 KiB: the part
// `cobblestone` of `make bench-web`.
//
// A trial encrypts or decrypts one message of 256 MiB from memory by each contender. Each contender runs in a process of its own, so
// its compilation and its collection of garbage take no time of another contender. The contenders take turns in rounds of 16 MiB, so a
// change of the machine's speed concerns all. Each trial has new processes, since their layout in memory changes the rates.
//
// Before it is timed, a contender processes 32 MiB. The first 16 MiB of these are compared with the message that `node:crypto` computes.
// During the other 16 MiB, the functions of WebCrypto and of `node:crypto` are replaced, to find out what the backend `auto` has selected.
// WebCrypto runs with the number of concurrent calls that is the fastest in a measurement at the start.

import { fork } from 'node:child_process';
import nodeCrypto, { createCipheriv, createHmac, createSecretKey } from 'node:crypto';
import { fileURLToPath, pathToFileURL } from 'node:url';

const MIB = 1 << 20;
const [CHUNK, SEALED, HEADER] = [16384, 16400, 56];
const LENGTH = 256 * MIB;
const ROUND = 16 * MIB;
const WARM_UP = 32 * MIB;
const TRIALS = 15;
// The interval from the fourth to the twelfth of 15 sorted values contains the median of their distribution with a probability of 96.5 %,
// whatever the distribution: the number of values below the median is binomial.
const [FROM, TO] = [3, 11];
const FLIGHTS = [16, 32, 64, 128, 256];
// WebCrypto alone, `node:crypto` alone, and streams with the name of their backend and the length of the pieces of their source.
const STREAMS = { auto: ['auto', MIB], 'auto, pieces of 64 KiB': ['auto', 65536], webcrypto: ['webcrypto', MIB] };
const CONTENDERS = ['alone', 'node', ...Object.keys(STREAMS)];

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

/** Measures one direction, `encrypt` or `decrypt`, and prints the rates and their ratio. */
export async function compare(direction) {
    const contenders = await Promise.all(CONTENDERS.map((name) => start(name, direction)));
    const found = FLIGHTS.map((flight) => ({ flight, times: [] }));
    for (let round = 0; round < 5; round++) {
        for (const { flight, times } of found) times.push(await contenders[0].ask({ first: 0, length: ROUND, flight }));
    }
    found.forEach((one) => (one.time = median(one.times)));
    const { flight } = found.reduce((best, one) => (one.time < best.time ? one : best));
    contenders.forEach((contender) => contender.stop());
    const trials = [];
    for (let index = 0; index < TRIALS; index++) trials.push(await trial(direction, flight));
    console.log(`\nCobblestone-256, ${direction}, ${LENGTH / MIB} MiB, medians of ${TRIALS} trials`);
    const print = (label, name) => {
        const rate = (LENGTH / median(trials.map(({ times }) => times[name])) / 1e6).toFixed(0);
        const ratios = ['alone', 'node'].filter((other) => other !== name && name !== 'alone').map((other) => `, ${ratio(trials, name, other)}`);
        const paths = [...new Set(trials.map((one) => one.paths[name]))].join(' or ');
        console.log(`  ${label.padEnd(34)} ${rate.padStart(6)} MB/s by ${paths}${ratios.join('')}`);
    };
    print(`WebCrypto, ${flight} calls in flight`, 'alone');
    print('node:crypto, on the calling thread', 'node');
    for (const name of Object.keys(STREAMS)) print(`stream, ${name}`, name);
}

/** Returns the median and the interval of the rate of a contender, divided by the rate of another one, as text. */
function ratio(trials, name, other) {
    const ratios = trials.map(({ times }) => times[other] / times[name]).sort((a, b) => a - b);
    const [middle, low, high] = [median(ratios), ratios[FROM], ratios[TO]].map((value) => value.toFixed(2));
    return `${middle} (${low} to ${high}) of ${other === 'alone' ? 'WebCrypto' : 'node:crypto'}`;
}

/** Returns the time in seconds that each contender takes for a message, and the implementation of AES-GCM that it uses. */
async function trial(direction, flight) {
    const contenders = await Promise.all(CONTENDERS.map((name) => start(name, direction)));
    const times = Object.fromEntries(CONTENDERS.map((name) => [name, 0]));
    for (let first = 0; first < LENGTH; first += ROUND) {
        const order = first % (2 * ROUND) === 0 ? contenders : contenders.toReversed();
        for (const { name, ask } of order) times[name] += await ask({ first, length: ROUND, flight });
    }
    contenders.forEach((contender) => contender.stop());
    return { times, paths: Object.fromEntries(contenders.map(({ name, path }) => [name, path])) };
}

/** Starts the process of a contender. `ask` lets it process a part of the message, and returns the time. */
async function start(name, direction) {
    const child = fork(fileURLToPath(import.meta.url), [name, direction]);
    const answer = () => new Promise((resolve, reject) => {
        child.once('message', resolve).once('exit', (code) => reject(new Error(`the process of ${name} has ended with code ${code}`)));
    });
    const ask = async (round) => {
        child.removeAllListeners();
        const time = answer();
        child.send(round);
        return time;
    };
    const path = await answer();
    return { name, path, ask, stop: () => child.removeAllListeners().kill() };
}

/** Makes bytes that look random and are the same in each process. */
function noise(length) {
    const bytes = new Uint8Array(length);
    const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16));
    for (let at = 0; at < length; at += MIB) bytes.set(cipher.update(bytes.subarray(at, at + MIB)), at);
    return bytes;
}

const KEY = Buffer.alloc(32, 9);

/** Derives the key, the nonce and the commitment of the message with this salt by HKDF-Expand. */
function derive(salt) {
    const info = Buffer.concat([Buffer.from('c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0'), salt]);
    const block = (...parts) => parts.reduce((mac, part) => mac.update(part), createHmac('sha512', KEY)).digest();
    const first = block(info, Buffer.of(1));
    const all = Buffer.concat([first, block(first, info, Buffer.of(2))]);
    return { key: all.subarray(0, 32), nonce: all.subarray(32, 44), commitment: all.subarray(44, 76) };
}

/** Encrypts a message of whole chunks by `node:crypto`. An empty chunk ends it. */
function message(plain, salt) {
    const { key, nonce, commitment } = derive(salt);
    const count = plain.length / CHUNK;
    const all = new Uint8Array(HEADER + count * SEALED + SEALED - CHUNK);
    all.set(salt);
    all.set(commitment, salt.length);
    for (let index = 0; index <= count; index++) {
        const iv = Buffer.from(nonce);
        iv.writeUInt32BE((iv.readUInt32BE(8) ^ index) >>> 0, 8);
        const cipher = createCipheriv('aes-256-gcm', key, iv);
        const at = HEADER + index * SEALED;
        const body = cipher.update(plain.subarray(index * CHUNK, (index + 1) * CHUNK));
        cipher.final();
        all.set(body, at);
        all.set(cipher.getAuthTag(), at + body.length);
    }
    return all;
}

const SALT = Buffer.alloc(24, 7);

/** Returns a function that processes a part of the message by WebCrypto and returns the results. */
async function alone(direction, input) {
    const { key, nonce } = derive(SALT);
    const { subtle } = globalThis.crypto;
    const imported = await subtle.importKey('raw', key, 'AES-GCM', false, [direction]);
    const [from, unit] = direction === 'encrypt' ? [0, CHUNK] : [HEADER, SEALED];
    // WebCrypto copies its parameters before a call returns. New ones for each call would take more time.
    const parameters = { name: 'AES-GCM', iv: Uint8Array.from(nonce).buffer };
    const view = new DataView(parameters.iv);
    return async ({ first, length, flight }, take) => {
        for (let index = first / CHUNK; index < (first + length) / CHUNK; index += flight) {
            const calls = [];
            for (let number = index; number < index + flight; number++) {
                view.setUint32(8, nonce.readUInt32BE(8) ^ number);
                calls.push(subtle[direction](parameters, imported, input.subarray(from + number * unit, from + (number + 1) * unit)));
            }
            for (const result of await Promise.all(calls)) take(new Uint8Array(result));
        }
    };
}

/** Returns a function that processes a part of the message by `node:crypto` and returns the results. */
function byNode(direction, input) {
    const { key, nonce } = derive(SALT);
    const secret = createSecretKey(key);
    const iv = Uint8Array.from(nonce);
    const view = new DataView(iv.buffer);
    const one = (make, chunk, tag) => {
        const cipher = make('aes-256-gcm', secret, iv);
        if (tag) cipher.setAuthTag(tag);
        const body = cipher.update(chunk);
        cipher.final();
        return [body, cipher];
    };
    return ({ first, length }, take) => {
        for (let number = first / CHUNK; number < (first + length) / CHUNK; number++) {
            view.setUint32(8, nonce.readUInt32BE(8) ^ number);
            if (direction === 'encrypt') {
                const [body, cipher] = one(nodeCrypto.createCipheriv, input.subarray(number * CHUNK, (number + 1) * CHUNK));
                take(body);
                take(cipher.getAuthTag());
            } else {
                const sealed = input.subarray(HEADER + number * SEALED, HEADER + (number + 1) * SEALED);
                take(one(nodeCrypto.createDecipheriv, sealed.subarray(0, CHUNK), sealed.subarray(CHUNK))[0]);
            }
        }
    };
}

/**
 * Returns a function that processes a part of the message by a stream. A stream starts with the part at 0. Its end is not timed: it would take
 * less than a thousandth of the time.
 */
async function stream(direction, input, [backend, piece]) {
    const web = await import(pathToFileURL(`${process.env.LOCKSTEP_WEB}/lockstep.js`));
    await web.init();
    const keyFile = new TextEncoder().encode(`lockstep-key-256 ${KEY.toString('hex')}\n`);
    const isEncryption = direction === 'encrypt';
    const [unit, header, sealedUnit, sealedHeader] = isEncryption ? [CHUNK, 0, SEALED, HEADER] : [SEALED, HEADER, CHUNK, 0];
    let reader, limit, received, wake;
    const begin = () => {
        let at = 0;
        [limit, received] = [0, 0];
        // Supplies the input up to `limit`.
        const source = new ReadableStream({
            async pull(controller) {
                while (at === limit) await new Promise((resolve) => (wake = resolve));
                const end = Math.min(at + piece, limit);
                controller.enqueue(input.subarray(at, end));
                at = end;
            },
        });
        reader = source.pipeThrough(isEncryption ? web.encryptStream({ keyFile, backend }) : web.decryptStream({ keyFile, backend })).getReader();
    };
    return async ({ first, length }, take) => {
        if (first === 0) begin();
        const count = (first + length) / CHUNK;
        limit = header + count * unit;
        wake?.();
        while (received < sealedHeader + count * sealedUnit) {
            const { value } = await reader.read();
            received += value.length;
            take(value);
        }
    };
}

/** Calls `work`, and returns the implementation of AES-GCM whose functions were called. */
async function pathOf(work) {
    const paths = new Set();
    const note = (object, path, names) => names.map((name) => {
        const original = object[name];
        object[name] = (...args) => {
            paths.add(path);
            return original.apply(object, args);
        };
        return () => (object[name] = original);
    });
    const { subtle } = globalThis.crypto;
    const restore = [
        ...note(subtle, 'WebCrypto', ['encrypt', 'decrypt']),
        ...note(nodeCrypto, 'node:crypto', ['createCipheriv', 'createDecipheriv']),
    ];
    await work();
    restore.forEach((run) => run());
    return paths.size === 0 ? 'WebAssembly' : [...paths].join(' and ');
}

/** Runs in the process of a contender. */
async function serve(name, direction) {
    const plain = noise(LENGTH);
    const input = direction === 'encrypt' ? plain : message(plain, SALT);
    const run = await (name === 'alone' ? alone : name === 'node' ? byNode : stream)(direction, input, STREAMS[name]);
    const results = [];
    await run({ first: 0, length: ROUND, flight: 64 }, (result) => results.push(result));
    check(Buffer.concat(results), name, direction, plain.subarray(0, ROUND));
    results.length = 0;
    let total = 0;
    const take = (result) => (total += result.length);
    const path = await pathOf(() => run({ first: ROUND, length: WARM_UP - ROUND, flight: 64 }, take));
    process.on('message', async (round) => {
        const start = performance.now();
        await run(round, take);
        process.send((performance.now() - start) / 1000);
    });
    process.send(path);
}

function check(found, name, direction, plain) {
    const hasHeader = name in STREAMS;
    const sealed = message(plain, hasHeader ? found.subarray(0, SALT.length) : SALT);
    const body = sealed.subarray(hasHeader ? 0 : HEADER, HEADER + (plain.length / CHUNK) * SEALED);
    if (Buffer.compare(found, direction === 'encrypt' ? body : plain) !== 0) throw new Error(`${name}: the result of ${direction} is wrong`);
}

if (process.send) await serve(...process.argv.slice(2));
