// Stores results of any size until they are saved: in the browser's private storage or, if it is missing, in memory.

import { size } from './dom.js';

// The maximum length of all results that are kept in memory, in bytes.
const MOST_IN_MEMORY = 512 << 20;
const PREFIX = 'lockstep-';

let folder;

/** Opens the folder of this page, and removes folders of closed pages. Each page holds a lock for its folder as long as it is open. */
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

/** Creates a file with this name, and opens it for writing. If opening fails, the file is removed. */
export async function create(directory, name) {
    const handle = await directory.getFileHandle(name, { create: true });
    const remove = () => directory.removeEntry(name).catch(() => {});
    try {
        return { handle, stream: await handle.createWritable(), remove };
    } catch (error) {
        await remove();
        throw error;
    }
}

/** Makes a place for a result. `stream` receives the result, `finish()` returns it after the end of the stream, and `remove()` removes it. */
export async function place() {
    const directory = await prepare();
    if (!directory) return inMemory();
    const { handle, stream, remove } = await create(directory, crypto.randomUUID());
    return { stream, finish: () => handle.getFile(), remove };
}

// The bytes of all results in memory.
let held = 0;

function inMemory() {
    const parts = [];
    let length = 0;
    const stream = new WritableStream({
        write(part) {
            if (held + part.length > MOST_IN_MEMORY) {
                throw new Error(`This browser gives the page no storage, so all results together are limited to ${size(MOST_IN_MEMORY)}. Save the results and reload the page, or use a window that is not private, another browser, or the command lockstep.`);
            }
            [length, held] = [length + part.length, held + part.length];
            parts.push(part);
        },
    });
    const remove = async () => {
        held -= length;
        [parts.length, length] = [0, 0];
    };
    return { stream, finish: async () => new Blob(parts), remove };
}
