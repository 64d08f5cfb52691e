// Lockstep for browsers and Node: encrypted files as streams and with random access, and the authenticated modes of AES.

export { aead, aeads } from './aead.js';
export { decryptionKeys, encryptionKeys, generateIdentity, generateKeyFile } from './keys.js';
export { init } from './module.js';
export { openBlob, openUrl } from './ranges.js';
export { decryptStream, encryptStream } from './streams.js';
