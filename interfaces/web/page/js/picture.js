// The section "What ECB shows". It shows the modes ECB and CBC on a picture, as Figures 36-11 and 36-13 of GPU Gems 3 do.

import { byId, element, readJson, say } from './dom.js';
import { PASSES } from './passes.js';
import { Reference, equal, random } from './reference.js';
import { Webgl } from './webgl.js';

const KERNEL = 'opengl/fixslice';
const MOST = 512;
const pass = (name) => PASSES.find(({ opengl }) => opengl === name);

// The picture of docs/papers/opengl.md. It consists of letters of 5 by 7 squares, row by row. Bit 4 of a row is its leftmost square.
const LETTERS = [
    [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
    [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
    [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110],
];

function letters() {
    const [edge, square, left] = [256, 14, 8];
    const top = (edge - 7 * square) / 2;
    const context = contextOf(edge, edge);
    context.fillStyle = 'rgb(32 64 160)';
    context.fillRect(0, 0, edge, edge);
    context.fillStyle = 'white';
    LETTERS.forEach((rows, letter) => rows.forEach((bits, row) => {
        for (let column = 0; column < 5; column++) {
            if ((bits >> (4 - column)) & 1) context.fillRect(left + square * (6 * letter + column), top + square * row, square, square);
        }
    }));
    return context.getImageData(0, 0, edge, edge);
}

function contextOf(width, height) {
    const canvas = element('canvas', { width, height });
    return canvas.getContext('2d', { willReadFrequently: true });
}

/** Returns the pixels of an image file. The width is made a multiple of four, so that a block never spans two rows. */
async function pixels(file) {
    let bitmap;
    try {
        bitmap = await createImageBitmap(file);
    } catch {
        throw new Error('The browser cannot read this file as a picture. Choose a PNG, JPEG or WebP file.');
    }
    const scale = Math.min(1, MOST / Math.max(bitmap.width, bitmap.height));
    const width = Math.max(4, Math.round((bitmap.width * scale) / 4) * 4);
    const height = Math.max(1, Math.round(bitmap.height * scale));
    const context = contextOf(width, height);
    context.fillStyle = 'white';
    context.fillRect(0, 0, width, height);
    context.drawImage(bitmap, 0, 0, width, height);
    bitmap.close();
    return context.getImageData(0, 0, width, height);
}

function figure(bytes, { width, height }, caption, description) {
    const shown = new ImageData(new Uint8ClampedArray(bytes), width, height);
    // The opacity is encrypted too. It is set to 255 here, because only opaque pixels show all their bytes.
    for (let at = 3; at < shown.data.length; at += 4) shown.data[at] = 255;
    const context = contextOf(width, height);
    context.putImageData(shown, 0, 0);
    context.canvas.setAttribute('role', 'img');
    context.canvas.setAttribute('aria-label', description);
    return element('figure', {}, element('figcaption', {}, caption), context.canvas);
}

let webgl;

/** Encrypts the picture, has the GPU decrypt both ciphertexts, and compares the results with WebCrypto and the original. */
async function encrypted(image) {
    webgl ??= Webgl.open(await readJson('opengl.json'));
    const [key, iv] = [random(16), random(16)];
    const reference = await Reference.of(key);
    const plain = new Uint8Array(image.data);
    const ecb = webgl.run(KERNEL, pass('EcbEncrypt'), key, plain, iv);
    // CBC encryption is serial, so the CPU encrypts. The GPU decrypts the result.
    const cbc = await reference.cbcEncrypt(iv, plain);
    const back = [webgl.run(KERNEL, pass('EcbDecrypt'), key, ecb, iv), webgl.run(KERNEL, pass('CbcDecrypt'), key, cbc, iv)];
    const isRight = await pass('EcbEncrypt').compare({ reference, data: plain }, ecb);
    if (!isRight || !back.every((bytes) => equal(bytes, plain))) throw new Error('The GPU computes wrong results. Update the graphics driver.');
    return { plain, ecb, cbc };
}

async function show(load) {
    const [place, message] = [byId('pictures'), byId('picture-message')];
    try {
        say(message, 'Encrypting.');
        const image = await load();
        const { plain, ecb, cbc } = await encrypted(image);
        place.replaceChildren(
            figure(plain, image, 'Picture', 'The picture before encryption'),
            figure(ecb, image, 'ECB: by your GPU', 'The picture encrypted in ECB mode: equal areas are still equal'),
            figure(cbc, image, 'CBC: by the CPU', 'The picture encrypted in CBC mode: noise'),
        );
        say(message, `Encrypted and decrypted by ${webgl.name}, and compared.`, 'good');
    } catch (error) {
        webgl = undefined;
        place.replaceChildren();
        say(message, error.message, 'error');
    }
}

export function startPicture() {
    const input = byId('picture-file');
    input.addEventListener('change', () => input.files[0] && show(() => pixels(input.files[0])));
    // This section is below the other sections, so the GPU is opened only when a reader scrolls to it.
    const observer = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        observer.disconnect();
        if (input.files.length === 0) show(async () => letters());
    });
    observer.observe(byId('picture'));
}
