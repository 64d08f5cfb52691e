// The passes of the kernels. For each pass, this module computes the chaining state after a number of blocks, and compares a result with
// WebCrypto.

import { counterAfter, littleBlockOf, littleCounterAfter, littleNumberOf, tweakAfter } from './aes.js';
import { before, equal, xor } from './reference.js';

const states = (count, at) => {
    const all = new Uint8Array(16 * count);
    for (let i = 0; i < count; i++) all.set(at(i), 16 * i);
    return all;
};

async function tweaks({ tweak, iv }, data) {
    let number = littleNumberOf(await tweak.encryptBlock(iv));
    return states(data.length / 16, () => {
        const block = littleBlockOf(number);
        number = tweakAfter(number, 1);
        return block;
    });
}

// A message has the members `reference` (its key), `tweak` (the second key of XTS), `iv` and `data`.
const compare = {
    ecbEncrypt: async ({ reference, data }, out) => equal(await reference.decryptBlocks(out), data),
    ecbDecrypt: async ({ reference, data }, out) => equal(await reference.decryptBlocks(data), out),
    ctr: async ({ reference, iv, data }, out) => equal(await reference.ctr(iv, data), out),
    ctr32: async ({ reference, iv, data }, out) => equal(await reference.ctr(iv, data, 32), out),
    ctrLittle32: async ({ reference, iv, data }, out) =>
        equal(await reference.decryptBlocks(xor(out, data)), states(data.length / 16, (i) => littleCounterAfter(iv, i))),
    cbcDecrypt: async ({ reference, iv, data }, out) => equal(await reference.cbcDecrypt(iv, data), out),
    cfbDecrypt: async ({ reference, iv, data }, out) => equal(await reference.decryptBlocks(xor(out, data)), before(iv, data)),
    xtsEncrypt: async (message, out) => {
        const masks = await tweaks(message, message.data);
        return equal(xor(await message.reference.decryptBlocks(xor(out, masks)), masks), message.data);
    },
    xtsDecrypt: async (message, out) => {
        const masks = await tweaks(message, message.data);
        return equal(xor(await message.reference.decryptBlocks(xor(message.data, masks)), masks), out);
    },
};

const never = () => new Uint8Array(16);

/**
 * The passes. `wgpu` is the name of a pass in programs of `devices/wgpu`, and `opengl` is its name in programs of `devices/opengl`. `state`
 * returns the chaining state after `count` blocks.
 */
export const PASSES = [
    { name: 'ECB encryption', wgpu: 'ecb_encrypt', opengl: 'EcbEncrypt', state: never, compare: compare.ecbEncrypt },
    { name: 'ECB decryption', wgpu: 'ecb_decrypt', opengl: 'EcbDecrypt', decrypts: true, state: never, compare: compare.ecbDecrypt },
    { name: 'CTR', wgpu: 'ctr', opengl: 'Ctr', counterBits: 128, state: counterAfter, compare: compare.ctr },
    { name: 'CTR, 32-bit counter', wgpu: 'ctr', opengl: 'Ctr32', counterBits: 32, state: (iv, n) => counterAfter(iv, n, 32), compare: compare.ctr32 },
    { name: 'CTR of GCM-SIV', wgpu: 'ctr_little32', state: littleCounterAfter, compare: compare.ctrLittle32 },
    { name: 'CBC decryption', wgpu: 'cbc_decrypt', opengl: 'CbcDecrypt', decrypts: true, looksBack: true, compare: compare.cbcDecrypt },
    { name: 'CFB decryption', wgpu: 'cfb_decrypt', opengl: 'Cfb128Decrypt', looksBack: true, compare: compare.cfbDecrypt },
    { name: 'XTS encryption', wgpu: 'xts_encrypt', opengl: 'XtsEncrypt', tweaks: true, compare: compare.xtsEncrypt },
    { name: 'XTS decryption', wgpu: 'xts_decrypt', opengl: 'XtsDecrypt', decrypts: true, tweaks: true, compare: compare.xtsDecrypt },
];
