// The worker that derives keys from passphrases. Where workers are forbidden, the page calls `answer` itself.

import start, { unwrapByPassphrase, wrapForPassphrase } from './lockstep_web.js';

/** Answers a request with a key and an envelope, or with an error. */
export async function answer({ module, envelope, passphrases }) {
    try {
        await start({ module_or_path: module });
        if (envelope === undefined) {
            const [key, made] = wrapForPassphrase(passphrases[0]);
            return { key: key.bytes(), envelope: made };
        }
        return { key: unwrap(envelope, passphrases).bytes() };
    } catch (error) {
        if (error.code) return { error: { code: error.code, message: error.message } };
        return { error: { code: 'memory', message: `the passphrase requires more memory than there is (${error.message})` } };
    }
}

function unwrap(envelope, [passphrase, ...others]) {
    try {
        return unwrapByPassphrase(envelope, passphrase);
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
