// Tests the kernels on WebGPU and WebGL 2 in software, and the page with a GPU that is missing, computes wrong results, or is lost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, serve } from './browser.js';

const FOLDER = process.env.LOCKSTEP_PAGE;
let site, browser;

before(async () => {
    site = await serve(FOLDER);
    browser = await launch();
});
after(async () => {
    await browser?.close();
    site?.server.close();
});

/** Starts a test of the page, and waits for its last message. */
async function finished(page, name) {
    await page.click(`#${name}-start`);
    await page.waitForFunction((id) => /\b(good|error)\b/.test(document.getElementById(id).className), `${name}-message`, { timeout: 150000 });
    return page.textContent(`#${name}-message`);
}

const results = (page) => page.evaluate(() => globalThis.lockstepPage.results);

test('WebGPU: every kernel agrees with WebCrypto, and rates follow', async () => {
    const { page, wrong } = await open(browser, site.url, { query: '?quick' });
    assert.match(await finished(page, 'wgpu'), /^Done/);
    const { wgpu } = await results(page);
    assert.deepEqual(wgpu.tests.map(({ name, tests, failures }) => [name, tests, failures.length]), [['wgpu/bitslice', 64, 0], ['wgpu/table', 44, 0]]);
    assert.equal(wgpu.points.length, 8 * 4);
    assert.ok(wgpu.points.every(({ resident, host }) => resident.median > 0 && host.median > 0));
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('WebGL 2: every kernel agrees with WebCrypto, and the figure follows', async () => {
    const { page, wrong } = await open(browser, site.url, { query: '?quick' });
    assert.match(await finished(page, 'webgl'), /^Done/);
    const { opengl } = await results(page);
    assert.equal(opengl.tests.length, 7);
    assert.ok(opengl.tests.every(({ failures }) => failures.length === 0));
    assert.equal(opengl.points.length, 5 * 4);
    assert.equal(await page.locator('#webgl-results svg.plot path.line').count(), 5);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('#copy');
    await page.waitForFunction(() => /\bgood\b/.test(document.getElementById('copy-message').className));
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(copied.opengl.points.length, 20);
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('a kernel that computes wrong results is reported, and no rate is shown', async () => {
    const { page } = await open(browser, site.url, { query: '?quick' });
    // Changes an entry in the tables of the kernels of GPU Gems 3.
    await page.route('**/opengl.json', async (route) => {
        const exported = await (await route.fetch()).json();
        exported.tables['S-box'][0x63] ^= 1;
        await route.fulfill({ json: exported });
    });
    assert.match(await finished(page, 'webgl'), /wrong results/);
    const { opengl } = await results(page);
    const failed = opengl.tests.filter(({ failures }) => failures.length > 0).map(({ name }) => name);
    assert.deepEqual(failed, ['opengl/gems-vertex', 'opengl/gems-fragment', 'opengl/gems-vertex-uniform', 'opengl/gems-fragment-uniform', 'opengl/gems-vertex-mode', 'opengl/gems-fragment-mode']);
    assert.equal(opengl.points, undefined);
    assert.equal(await page.locator('#webgl-results table').count(), 0);
    await page.context().close();
});

// Makes each GPU lost after the page has opened it.
function loseGpus() {
    const { requestDevice } = GPUAdapter.prototype;
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await requestDevice.call(this, descriptor);
        device.destroy();
        return device;
    };
    const { getContext } = HTMLCanvasElement.prototype;
    HTMLCanvasElement.prototype.getContext = function (name, options) {
        const context = getContext.call(this, name, options);
        if (name === 'webgl2') setTimeout(() => context.getExtension('WEBGL_lose_context').loseContext(), 100);
        return context;
    };
}

test('a lost GPU is a message with a remedy', async () => {
    const { page } = await open(browser, site.url, { query: '?quick', before: loseGpus });
    for (const name of ['webgl', 'wgpu']) assert.match(await finished(page, name), /GPU was lost.*Reload the page/s);
    assert.deepEqual(await results(page), {});
    await page.context().close();
});

// Makes the memory of each GPU full when the page uses it.
function fillGpus() {
    // Without this, the page would compile all programs first.
    GPUDevice.prototype.createComputePipelineAsync = async () => undefined;
    GPUDevice.prototype.popErrorScope = async () => new GPUOutOfMemoryError('full');
    WebGL2RenderingContext.prototype.getError = () => WebGL2RenderingContext.OUT_OF_MEMORY;
}

test('a GPU whose memory is full is a message with a remedy', async () => {
    const { page } = await open(browser, site.url, { query: '?quick', before: fillGpus });
    for (const name of ['webgl', 'wgpu']) assert.match(await finished(page, name), /not enough memory\. Close other programs and tabs/);
    assert.deepEqual(await results(page), {});
    await page.context().close();
});

test('ECB and CBC on a picture', async () => {
    const { page, wrong } = await open(browser, site.url);
    await page.locator('#picture').scrollIntoViewIfNeeded();
    await page.waitForSelector('#picture-message.good');
    // The picture has few colours, so its blocks in ECB mode have few different values. In CBC mode, all blocks differ.
    const blocks = () => page.evaluate(() => [...document.querySelectorAll('#pictures canvas')].map((canvas) => {
        const words = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(Array.from({ length: words.length / 4 }, (_, at) => words.slice(4 * at, 4 * at + 4).join())).size;
    }));
    const [plain, ecb, cbc] = await blocks();
    assert.ok(plain < 20 && ecb === plain && cbc === 256 * 64, `${plain} ${ecb} ${cbc}`);
    await page.setInputFiles('#picture-file', { name: 'text.png', mimeType: 'image/png', buffer: Buffer.from('no picture') });
    await page.waitForSelector('#picture-message.error');
    assert.match(await page.textContent('#picture-message'), /cannot read this file as a picture/);
    assert.deepEqual(wrong, []);
    await page.context().close();
});

test('without WebGPU and WebGL the page says what to do', async () => {
    const other = await launch(false);
    try {
        const { page, wrong } = await open(other, site.url);
        assert.match(await finished(page, 'wgpu'), /no GPU for it\. Update the graphics driver/);
        assert.match(await finished(page, 'webgl'), /no WebGL 2.*Update the browser/s);
        await page.locator('#picture').scrollIntoViewIfNeeded();
        await page.waitForSelector('#picture-message.error');
        assert.equal(await page.getAttribute('#copy', 'disabled'), '');
        // The browser prints these messages because the GPU is missing.
        assert.deepEqual(wrong.filter((text) => !/WebGL|No available adapters/.test(text)), []);
        const older = await open(other, site.url, { before: () => delete Navigator.prototype.gpu });
        assert.match(await finished(older.page, 'wgpu'), /has no WebGPU\. Chrome and Edge have it/);
    } finally {
        await other.close();
    }
});
