/** Lockstep for browsers and Node. Every error is an `Error` with a `code` and a message that states the remedy. */

/** A code of an error: see docs/web.md. */
export type ErrorCode =
    | 'argument' | 'damaged' | 'envelope' | 'failed' | 'http' | 'identity' | 'internal' | 'key-file' | 'memory' | 'needs-identity'
    | 'needs-key-file' | 'needs-passphrase' | 'no-ranges' | 'no-simd' | 'no-webcrypto' | 'not-authentic' | 'not-loaded' | 'other-format'
    | 'recipient' | 'self-test' | 'too-long' | 'truncated' | 'wrong-key';

export interface LockstepError extends Error {
    code: ErrorCode;
}

/**
 * Loads the module. It must be loaded before any other function is called. Without an argument, the file `lockstep_web_bg.wasm` in the
 * folder of this file is loaded.
 */
export function init(source?: string | URL | BufferSource | WebAssembly.Module): Promise<void>;

/**
 * For files, `auto` measures WebAssembly and WebCrypto on the first data, and takes the faster one. In Node, the backend `auto` uses
 * `node:crypto` for files, in place of WebCrypto.
 */
export type Backend = 'auto' | 'wasm' | 'webcrypto';

/** The options of an encryption. They must contain exactly one kind of key. */
export interface EncryptOptions {
    /** The text of a key file: `lockstep-key-256 ` and 64 hex digits. */
    keyFile?: Uint8Array;
    /** Deriving the key takes about a second and 256 MiB, in a worker. */
    passphrase?: string;
    /** Recipients of age with X25519: `age1...`. */
    recipients?: string[];
    backend?: Backend;
}

/** The options of a decryption. They must contain at least one key. */
export interface DecryptOptions {
    keyFile?: Uint8Array;
    passphrase?: string;
    /** Identities of age with X25519 (`AGE-SECRET-KEY-1...`), or the texts of files that contain such lines. */
    identities?: string[];
    backend?: Backend;
}

/**
 * The keys of several files. All files that are encrypted with one object share a key and an envelope, and each envelope is opened only once.
 * Therefore a passphrase is processed once, not for each file.
 */
export interface FileKeys {
    /** Wipes the keys. */
    free(): void;
}

export function encryptionKeys(options: EncryptOptions): Promise<FileKeys>;
export function decryptionKeys(options: DecryptOptions): FileKeys;

/** Options that take their key from `encryptionKeys` or `decryptionKeys`. */
export interface KeysOption {
    keys: FileKeys;
    backend?: Backend;
}

/** Encrypts a stream, in the formats of docs/file-format.md. The result is for `pipeThrough`, or for `pipeTo` to and from its two sides. */
export function encryptStream(options: EncryptOptions | KeysOption): ReadableWritablePair<Uint8Array, Uint8Array>;

/**
 * Decrypts a stream. Only verified plaintext is returned. Only the end of the stream shows that the file is complete. So if the stream
 * fails, discard all of its output.
 */
export function decryptStream(options: DecryptOptions | KeysOption): ReadableWritablePair<Uint8Array, Uint8Array>;

/** Generates a key file. Returns its text. */
export function generateKeyFile(): Uint8Array;

/** Generates an identity of age. Returns the identity and its recipient. */
export function generateIdentity(): { identity: string; recipient: string };

/** An encrypted file whose header, last chunk and length are verified. */
export interface EncryptedFile {
    /** The number of bytes of the plaintext. */
    readonly size: number;
    /** Reads plaintext from an offset. Returns fewer bytes at the end. Each chunk is verified before its plaintext is returned. */
    read(offset: number, length: number): Promise<Uint8Array>;
    /** Wipes the key. */
    free(): void;
}

export function openBlob(blob: Blob, options: DecryptOptions | KeysOption): Promise<EncryptedFile>;

/** Opens an encrypted file at a URL. The server must answer requests for ranges. If it has another origin, it must permit them (CORS). */
export function openUrl(url: string | URL, options: DecryptOptions | KeysOption): Promise<EncryptedFile>;

/** An authenticated mode. Ranges of lengths are in bytes; the second number can be `Infinity`. */
export interface AeadInfo {
    name: string;
    keyLengths: number[];
    nonceLengths: [number, number][];
    nonceIsOptional: boolean;
    tagLengths: [number, number][];
    /** True if the tag is before the ciphertext. */
    tagIsFirst: boolean;
    /** The maximum number of strings of associated data. */
    maxStrings: number;
}

export function aeads(): AeadInfo[];

/** Associated data: one string, or several in the mode SIV. */
export type Aad = Uint8Array | Uint8Array[] | null | undefined;

/** A key of a mode. With most modes, a nonce must never be used for two messages. */
export interface Aead {
    /** Returns the ciphertext and the tag as one string. */
    seal(nonce: Uint8Array, aad: Aad, plaintext: Uint8Array): Uint8Array;
    /** Throws an error with the code `not-authentic` unless the message is authentic. */
    open(nonce: Uint8Array, aad: Aad, sealed: Uint8Array): Uint8Array;
    /** Uses WebCrypto for messages of GCM from 24 KiB on. After the call has returned, the arguments may be changed. */
    sealAsync(nonce: Uint8Array, aad: Aad, plaintext: Uint8Array): Promise<Uint8Array>;
    openAsync(nonce: Uint8Array, aad: Aad, sealed: Uint8Array): Promise<Uint8Array>;
    sealBatch(messages: { nonce: Uint8Array; aad?: Uint8Array; plaintext: Uint8Array }[]): Uint8Array[];
    /** For a message that is not authentic, the result contains `null`. */
    openBatch(messages: { nonce: Uint8Array; aad?: Uint8Array; sealed: Uint8Array }[]): (Uint8Array | null)[];
    /** Wipes the key. */
    free(): void;
}

export function aead(name: string, key: Uint8Array, options?: { tagLength?: number; backend?: Backend }): Aead;
