// Starts a server for the page and a headless Chromium.

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
// Options for WebGPU and WebGL 2 in software.
const SOFTWARE = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-unsafe-swiftshader', '--use-angle=swiftshader'];

/** Serves a folder below /some/folder/, because the page must work in a subfolder. Returns the server and the URL of the page. */
export async function serve(folder) {
    const prefix = '/some/folder/';
    const server = createServer(async (request, response) => {
        const path = new URL(request.url, 'http://localhost').pathname;
        const name = normalize(path.slice(prefix.length)) || 'index.html';
        try {
            if (!path.startsWith(prefix) || name.startsWith('..')) throw new Error('outside');
            const content = await readFile(join(folder, name === '.' ? 'index.html' : name));
            response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'text/html', 'x-content-type-options': 'nosniff' }).end(content);
        } catch {
            response.writeHead(404).end();
        }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { server, url: `http://localhost:${server.address().port}${prefix}` };
}

function program() {
    for (const name of PROGRAMS) {
        try {
            return execFileSync('which', [name], { encoding: 'utf8' }).trim();
        } catch {
            // The next one.
        }
    }
    throw new Error('there is no Chromium: `tools/setup.sh browser` installs one');
}

/** Starts a browser, with WebGPU and WebGL 2 in software or without both. */
export function launch(withGpu = true) {
    const args = withGpu ? SOFTWARE : ['--disable-gpu', '--disable-3d-apis', '--disable-features=WebGPU', '--disable-blink-features=WebGPU'];
    return chromium.launch({ executablePath: program(), args: ['--no-sandbox', ...args] });
}

/**
 * Opens the page. The page runs the function `before` first. `wrong` collects messages on the console, exceptions, violations of the policy
 * and requests to other hosts.
 */
export async function open(browser, url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
    const page = await context.newPage();
    const wrong = [];
    page.on('console', (message) => {
        // This warning is expected, because the experiment waits for the results of each draw.
        const isExpected = message.text().includes('GPU stall due to ReadPixels');
        if (['error', 'warning'].includes(message.type()) && !isExpected) wrong.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => wrong.push(`exception: ${error.message}`));
    page.on('request', (request) => {
        const asked = request.url();
        if (!asked.startsWith(url) && !asked.startsWith('blob:')) wrong.push(`it asks for ${asked}`);
    });
    page.on('response', (response) => response.status() >= 400 && wrong.push(`${response.url()}: ${response.status()}`));
    await page.addInitScript(() => addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
    if (options.before) await page.addInitScript(options.before);
    await page.goto(url + (options.query ?? ''));
    return { page, context, wrong };
}

/** Opens the page, and waits until files can be processed. */
export async function ready(browser, url, options) {
    const opened = await open(browser, url, options);
    await opened.page.waitForSelector('#files-start:enabled');
    return opened;
}

/** Saves the result with this name that was offered last. Returns its content. */
export async function saved(page, name) {
    const download = page.waitForEvent('download');
    await page.click(`#files-results a[download="${name}"] >> nth=-1`);
    return readFile(await (await download).path());
}

/**
 * Waits until an asynchronous function, which the browser runs, returns a true value. Playwright's `waitForFunction` takes the promise of such
 * a function for a true value.
 */
export async function until(page, isTrue) {
    const end = Date.now() + 30_000;
    while (!(await page.evaluate(isTrue))) {
        if (Date.now() > end) throw new Error(`after 30 seconds, this is still false: ${isTrue}`);
        await page.waitForTimeout(20);
    }
}

/** Waits for the outcome of a run. Returns the kind and the text of the message. */
export async function outcome(page) {
    await page.waitForFunction(() => /\b(good|error)\b/.test(document.getElementById('files-message').className), null, { timeout: 60000 });
    const kind = await page.getAttribute('#files-message', 'class');
    await page.evaluate(() => (document.getElementById('files-message').className = 'message'));
    return [kind, await page.textContent('#files-message')];
}
