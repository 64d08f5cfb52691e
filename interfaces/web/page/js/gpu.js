// The section "Your GPU".

import { byId, element, rateText, readJson, say, size, table, task } from './dom.js';
import { PASSES } from './passes.js';
import { plot } from './plot.js';
import { Wgpu } from './wgpu.js';
import { PROGRAMS, rate, tests as wgpuTests } from './wgpu_tests.js';
import { Webgl } from './webgl.js';
import { CHAPTER, KERNELS, experiment, tests as webglTests } from './webgl_tests.js';

// `?quick` selects small sizes and few runs, for software devices.
const quick = new URLSearchParams(location.search).has('quick');
const WGPU_BYTES = quick ? 1 << 18 : 32 << 20;
const KEY_BYTES = 16;
const FIGURE = quick
    ? { total: 1 << 18, runs: 2, batches: [4096, 16384, 65536, 262144] }
    : { total: 16 << 20, runs: 10, batches: [6, 7, 8, 9, 10, 11, 12].map((power) => 4 ** power) };
const ROUNDS = quick ? 1 : 5;

const results = {};

/** Runs tests, and returns for each kernel the number of tests and the failures. */
async function runTests(list, progress, signal) {
    const kernels = new Map();
    for (const [index, { kernel, name, test }] of list.entries()) {
        signal.throwIfAborted();
        const entry = kernels.get(kernel) ?? { name: kernel, tests: 0, failures: [] };
        kernels.set(kernel, entry);
        entry.tests += 1;
        const wrong = await test();
        if (wrong) entry.failures.push(`${name}: ${wrong}`);
        progress(index / list.length);
        await new Promise((resolve) => setTimeout(resolve));
    }
    return [...kernels.values()];
}

/** Shows the outcome of tests. Returns true if there was no failure. */
function outcome(place, kernels) {
    const failed = kernels.filter(({ failures }) => failures.length > 0);
    for (const { name, tests, failures } of kernels) {
        const text = failures.length ? `${name}: ${failures.length} of ${tests} tests FAILED: ${failures.join('; ')}` : `${name}: ${tests} tests passed`;
        place.append(element('p', { class: failures.length ? 'error' : 'good' }, text));
    }
    return failed.length === 0;
}

const WRONG = 'The GPU computes wrong results, so no rate is shown. Update the graphics driver, and report this with the results as JSON.';

const environment = () => ({ date: new Date().toISOString().slice(0, 10), browser: navigator.userAgent, processors: navigator.hardwareConcurrency });

function publish(name, result) {
    results[name] = { ...environment(), ...result };
    byId('copy').disabled = false;
}

async function testWgpu(progress, signal) {
    const [place, message] = [byId('wgpu-results'), byId('wgpu-message')];
    place.replaceChildren();
    const gpu = await Wgpu.open(await readJson('wgpu.json'));
    byId('wgpu-name').textContent = gpu.name;
    say(message, 'Compiling and testing the programs.');
    await gpu.compile(PROGRAMS);
    const kernels = await runTests(wgpuTests(gpu), (share) => progress(share / 2), signal);
    const device = { devices: [`wgpu: ${gpu.name}`], adapter: { ...fields(gpu.info) }, tests: kernels };
    if (!outcome(place, kernels)) {
        publish('wgpu', device);
        return say(message, WRONG, 'error');
    }
    say(message, 'Measuring.');
    const points = [];
    const bytes = Math.min(WGPU_BYTES, 2 ** Math.floor(Math.log2(gpu.largest / 4)));
    const shapes = [['bitslice', true], ['bitslice', false], ['table', true], ['table', false]];
    const measured = PASSES.filter(({ counterBits }) => counterBits !== 32);
    for (const [index, pass] of measured.entries()) {
        for (const [family, wide] of shapes) {
            signal.throwIfAborted();
            const found = await rate(gpu, pass, family, wide, bytes, KEY_BYTES, ROUNDS);
            points.push({ name: `wgpu/${family}`, pass: pass.name, invocations_per_tile: wide ? 32 : 1, bytes, resident: found.resident, host: found.host });
        }
        progress(0.5 + index / measured.length / 2);
    }
    publish('wgpu', { ...device, key_bits: 8 * KEY_BYTES, rounds: ROUNDS, points });
    const at = (pass, name, invocations) => points.find((point) => point.pass === pass && point.name === name && point.invocations_per_tile === invocations);
    const row = ({ name }) => [name, ...shapes.map(([family, wide]) => rateText(at(name, `wgpu/${family}`, wide ? 32 : 1).resident.median)),
        rateText(at(name, 'wgpu/bitslice', 32).host.median)];
    const head = ['Pass', 'bitslice, 32', 'bitslice, 1', 'table, 32', 'table, 1', 'bitslice, 32, host'];
    place.append(table(
        `AES-128, ${size(bytes)}, medians of ${ROUNDS}. Data on the GPU, except in the last column, which is from the memory of the page to the GPU and back. 32 and 1 are the invocations for each tile. wgpu/table is not constant time.`,
        head, measured.map(row)));
    say(message, `Done: every result is that of the browser’s own AES.`, 'good');
}

const fields = ({ vendor, architecture, device, description }) => ({ vendor, architecture, device, description });

async function testWebgl(progress, signal) {
    const [place, message] = [byId('webgl-results'), byId('webgl-message')];
    place.replaceChildren();
    const webgl = Webgl.open(await readJson('opengl.json'));
    byId('webgl-name').textContent = webgl.name;
    say(message, 'Compiling and testing the programs.');
    const kernels = await runTests(webglTests(webgl), (share) => progress(share / 3), signal);
    const device = { devices: [`webgl: ${webgl.name}, ${webgl.version}`], tests: kernels };
    if (!outcome(place, kernels)) {
        publish('opengl', device);
        return say(message, WRONG, 'error');
    }
    say(message, 'Measuring.');
    const points = [];
    const report = (point) => {
        points.push(point);
        progress(1 / 3 + ((2 / 3) * points.length) / (KERNELS.length * FIGURE.batches.length));
    };
    await experiment(webgl, FIGURE, report, signal);
    publish('opengl', { ...device, total_bytes: FIGURE.total, runs: FIGURE.runs, points, chapter: CHAPTER });
    const rates = (name) => points.filter((point) => point.name === name);
    const lines = KERNELS.map(({ name, label }) => ({ label, points: rates(name).map((point) => [point.batch_bytes, point.bytes_per_second]) }));
    const marks = [['chapter: vertex program', CHAPTER.vertex], ['fragment program above it', CHAPTER.fragment]].map(([label, value]) => ({ label, at: [CHAPTER.batch_bytes, value] }));
    place.append(plot(`AES-128-ECB by batch size on ${webgl.name}`, lines, marks));
    const batches = lines[0].points.map(([bytes]) => bytes);
    const rows = KERNELS.map(({ name, label }) => [label, ...rates(name).map((point) => rateText(point.bytes_per_second))]);
    const theirs = (label, value) => [label, ...batches.map((batch) => (batch === CHAPTER.batch_bytes ? rateText(value) : '–'))];
    rows.push(theirs('chapter, vertex program', CHAPTER.vertex), theirs('chapter, fragment program', CHAPTER.fragment));
    place.append(table(`Means of ${FIGURE.runs} runs over ${size(FIGURE.total)}. The chapter’s GPU is a GeForce 8800 GTS.`, ['Kernel', ...batches.map(size)], rows));
    say(message, 'Done: every result is that of the browser’s own AES.', 'good');
}

async function copy() {
    const text = JSON.stringify({ source: 'Lockstep, page in the browser', ...results }, null, 2);
    const message = byId('copy-message');
    try {
        await navigator.clipboard.writeText(text);
        say(message, 'The results are in the clipboard.', 'good');
    } catch {
        const area = element('textarea', { rows: '10', readonly: '', 'aria-label': 'Results as JSON' });
        area.value = text;
        say(message, 'The browser does not permit access to the clipboard. Copy the text: ');
        message.append(area);
        area.select();
    }
}

export function startGpu() {
    // Scripts that test the page read these results.
    globalThis.lockstepPage = { results };
    task('wgpu', testWgpu);
    task('webgl', testWebgl);
    byId('copy').addEventListener('click', copy);
}
