// Folders: their files with paths, and the folder or the archive that receives the results.

import { create, place } from './storage.js';
import { archive, crc32, encodePath } from './zip.js';

/** The end of the name of an encrypted file. */
export const SUFFIX = '.enc';

/** True if the browser lets the page read and write folders of the disk. */
export const hasPicker = () => typeof globalThis.showDirectoryPicker === 'function';

/**
 * Returns the path of the result of a file, as the command names it, or undefined if decryption has no name for the result: the name of the
 * file does not end in `.enc`, or the rest is not a name.
 */
export function resultPath(action, path) {
    const [name, parents] = [path.at(-1), path.slice(0, -1)];
    if (action === 'encrypt') return [...parents, name + SUFFIX];
    const stem = name.slice(0, -SUFFIX.length);
    return name.endsWith(SUFFIX) && !['', '.', '..'].includes(stem) ? [...parents, stem] : undefined;
}

/** Lists the files of a field with the attribute `webkitdirectory`. Such a field does not list empty folders. */
export function listField(input) {
    const files = [...input.files].map((file) => ({ path: file.webkitRelativePath.split('/'), size: file.size, open: async () => file }));
    return { name: files[0]?.path[0], files, folders: [], failures: [] };
}

/** Lists a folder, without the folder `output` in it. `failures` are the subfolders that cannot be listed, each with the error. */
export async function listFolder(root, output) {
    const [files, folders, failures, pending] = [[], [], [], [{ handle: root, path: root.name ? [root.name] : [] }]];
    for (let next = pending.pop(); next; next = pending.pop()) {
        folders.push(next.path);
        try {
            for await (const handle of next.handle.values()) {
                const path = [...next.path, handle.name];
                if (handle.kind === 'file') {
                    // A file that cannot be read is listed. Its processing calls `open`, which fails again.
                    const size = await handle.getFile().then((file) => file.size, () => 0);
                    files.push({ path, size, open: () => handle.getFile() });
                } else if (!(await output?.isSameEntry(handle))) {
                    pending.push({ handle, path });
                }
            }
        } catch (error) {
            if (next.handle === root) throw error;
            failures.push({ path: folders.pop(), error });
        }
    }
    return { name: root.name, files, folders, failures };
}

/** A folder of the disk that receives results. A result gets its name only after it was written completely. */
export class OutputFolder {
    // The handles of the folders by their paths.
    #folders = new Map();

    constructor(root) {
        this.name = root.name;
        this.#folders.set('', Promise.resolve(root));
    }

    /** Returns the folder with this path. Missing folders are created. */
    folder(path) {
        const key = path.join('/');
        if (!this.#folders.has(key)) this.#folders.set(key, this.#make(path));
        return this.#folders.get(key);
    }

    async #make(path) {
        const [parent, name] = [await this.folder(path.slice(0, -1)), path.at(-1)];
        const found = await lookUp(parent, name, 'directory');
        if (!found) return parent.getDirectoryHandle(name, { create: true });
        // A file system may find the folder under another name, for example because it ignores case.
        for await (const stored of parent.keys()) if (stored === name) return found;
        throw new Error(`the disk has another folder whose name differs from ${name} only in case or form: rename it`);
    }

    /** Makes a place for a result, as `place` in storage.js does. The name must be unused. */
    async place(path) {
        const [folder, name] = [await this.folder(path.slice(0, -1)), path.at(-1)];
        await unused(folder, name);
        // The command gives its temporary files such names, and its option --resume removes old ones.
        const temporary = `.lockstep-${randomHex(8)}.tmp`;
        const { handle, stream, remove } = await create(folder, temporary);
        return {
            stream,
            async finish() {
                await unused(folder, name);
                await rename(handle, folder, name).finally(remove);
            },
            remove,
        };
    }
}

/** An archive that receives results, for browsers that do not let pages write folders. */
export class OutputArchive {
    #entries = [];
    #results = [];

    constructor(name) {
        this.name = `${name}.zip`;
    }

    async place(path) {
        const name = encodePath(path);
        const result = await place();
        let crc = 0;
        const check = new TransformStream({
            transform(part, controller) {
                crc = crc32(crc, part);
                controller.enqueue(part);
            },
        });
        const written = check.readable.pipeTo(result.stream);
        written.catch(() => {});
        return {
            stream: check.writable,
            finish: async (time) => {
                await written;
                this.#entries.push({ name, blob: await result.finish(), crc, time });
                this.#results.push(result);
            },
            remove: async () => {
                await written.catch(() => {});
                await result.remove();
            },
        };
    }

    /** Returns the archive of all results. */
    end() {
        return archive(this.#entries);
    }

    /** Removes all results. */
    async discard() {
        await Promise.all(this.#results.map((result) => result.remove()));
    }
}

const randomHex = (bytes) => Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Returns the handle of a file or a folder, or undefined if the name is unused. */
async function lookUp(folder, name, kind) {
    try {
        return await (kind === 'file' ? folder.getFileHandle(name) : folder.getDirectoryHandle(name));
    } catch (error) {
        if (error.name === 'NotFoundError') return undefined;
        if (error.name !== 'TypeMismatchError') throw error;
        throw new Error(`the output folder has ${kind === 'file' ? 'a folder' : 'a file'} with the name ${name}: choose another output folder`);
    }
}

const exists = (name) => new Error(`the output folder already has a file ${name}: remove it, or choose another output folder`);

async function unused(folder, name) {
    if (await lookUp(folder, name, 'file')) throw exists(name);
}

/** Renames a complete file. If the browser cannot rename files of the disk, the content is copied, and a copy that fails is removed. */
async function rename(handle, folder, name) {
    try {
        return await handle.move(name);
    } catch (error) {
        if (!['NotSupportedError', 'TypeError'].includes(error.name)) throw error;
    }
    // This call returns an existing file too, for example one that another program has created since the name was checked. A file that this
    // call has created is empty until the copy is complete.
    const target = await folder.getFileHandle(name, { create: true });
    const isEmpty = async () => (await target.getFile()).size === 0;
    if (!(await isEmpty())) throw exists(name);
    try {
        return await (await handle.getFile()).stream().pipeTo(await target.createWritable());
    } catch (error) {
        if (await isEmpty().catch(() => false)) await folder.removeEntry(name).catch(() => {});
        throw error;
    }
}
