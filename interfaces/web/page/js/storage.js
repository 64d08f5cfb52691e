// Results of any size, before they are saved: files in the browser's private storage, or in memory where that is missing.

import { size } from './dom.js';

// The largest result that is kept in memory, in bytes.
const MOST_IN_MEMORY = 512 << 20;
const PREFIX = 'lockstep-';

let folder;

/** The folder of this page. Folders of pages that are closed are removed: a lock exists as long as its page. */
async function open() {
    if (!navigator.storage?.getDirectory || !navigator.locks || !globalThis.FileSystemFileHandle?.prototype.createWritable) return undefined;
    try {
        const root = await navigator.storage.getDirectory();
        const name = PREFIX + crypto.randomUUID();
        await new Promise((resolve) => navigator.locks.request(name, () => new Promise(() => resolve())));
        for await (const other of root.keys()) {
            if (!other.startsWith(PREFIX) || other === name) continue;
            await navigator.locks.request(other, { ifAvailable: true }, (lock) => lock && root.removeEntry(other, { recursive: true }).catch(() => {}));
        }
        return await root.getDirectoryHandle(name, { create: true });
    } catch {
        // Private windows of some browsers have no storage.
        return undefined;
    }
}

/** Opens the storage, and removes results of pages that are closed. */
export function prepare() {
    return (folder ??= open());
}

/** True if results are not limited by the memory. */
export async function isUnlimited() {
    return Boolean(await prepare());
}

/** A place for a result: a stream to write to, `file()` after its end, and `remove()`. */
export async function place() {
    const directory = await prepare();
    if (!directory) return inMemory();
    const name = crypto.randomUUID();
    const handle = await directory.getFileHandle(name, { create: true });
    return {
        stream: await handle.createWritable(),
        file: () => handle.getFile(),
        remove: () => directory.removeEntry(name).catch(() => {}),
    };
}

function inMemory() {
    const parts = [];
    let length = 0;
    const stream = new WritableStream({
        write(part) {
            length += part.length;
            if (length > MOST_IN_MEMORY) {
                throw new Error(`This browser gives the page no storage, so results are limited to ${size(MOST_IN_MEMORY)}. Use a window that is not private, another browser, or the command lockstep.`);
            }
            parts.push(part);
        },
    });
    return { stream, file: async () => new Blob(parts), remove: async () => (parts.length = 0) };
}
