// A worker that derives keys from passphrases. If workers are forbidden, the page calls `answer` itself.

import { call, init } from './module.js';

/** Derives a key. Returns the key and, for a new file, also the envelope. If the derivation fails, returns an error. */
export async function answer({ module, envelope, passphrases }) {
    try {
        await init(module);
        if (envelope === undefined) {
            const [key, made] = call((exported) => exported.wrapForPassphrase(passphrases[0]));
            return { key: taken(key), envelope: made };
        }
        return { key: taken(unwrap(envelope, passphrases)) };
    } catch ({ code = 'failed', message, cause }) {
        const isTrap = cause instanceof WebAssembly.RuntimeError || cause instanceof RangeError;
        if (!isTrap) return { error: { code, message } };
        return { error: { code: 'memory', message: `the passphrase requires more memory than there is (${cause.message})` } };
    }
}

// Returns the bytes of a key, and wipes the key.
function taken(key) {
    try {
        return call(() => key.bytes());
    } finally {
        key.free();
    }
}

function unwrap(envelope, [passphrase, ...others]) {
    try {
        return call((exported) => exported.unwrapByPassphrase(envelope, passphrase));
    } catch (error) {
        if (error.code !== 'wrong-key' || others.length === 0) throw error;
        return unwrap(envelope, others);
    }
}

if (typeof WorkerGlobalScope === 'function' && globalThis.name === 'lockstep-passphrase') {
    globalThis.addEventListener('message', async ({ data }) => globalThis.postMessage(await answer(data)), { once: true });
} else if (typeof process === 'object' && process.versions?.node) {
    const { isMainThread, parentPort, workerData } = await import('node:worker_threads');
    if (!isMainThread && workerData === 'lockstep') {
        parentPort.once('message', async (request) => parentPort.postMessage(await answer(request)));
    }
}
