// Small helpers for elements.

export const byId = (id) => document.getElementById(id);

/** Makes an element with attributes and children. */
export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

export function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

/** Writes a message; `kind` is empty, `error` or `good`. */
export function say(place, text, kind = '') {
    place.textContent = text;
    place.className = `message ${kind}`.trim();
}

/** Makes a table with a caption. `head` is an array of texts, and `rows` is an array of such arrays. */
export function table(caption, head, rows) {
    const cells = (name, texts) => texts.map((text) => element(name, name === 'th' ? { scope: 'col' } : {}, text));
    const row = ([first, ...others]) => element('tr', {}, element('th', { scope: 'row' }, first), ...cells('td', others));
    const made = element('table', { 'aria-label': caption }, element('thead', {}, element('tr', {}, ...cells('th', head))), element('tbody', {}, ...rows.map(row)));
    // The caption is outside of the scrolling part, so it does not scroll with a wide table. `tabindex` lets the keyboard scroll the table.
    return element('div', {}, element('p', { class: 'hint' }, caption), element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table' }, made));
}

export async function readJson(name) {
    const response = await fetch(new URL(`../${name}`, import.meta.url));
    if (!response.ok) throw new Error(`The file ${name} of this page is missing (the server answers ${response.status}). Build the page again.`);
    return response.json();
}

/** Formats a size in bytes, such as 4 KiB. */
export function size(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
    const value = bytes / 2 ** (10 * power);
    return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[power]}`;
}

/** Formats a rate in units of 10^6 or 10^9 bytes per second. */
export function rateText(rate) {
    const [value, unit] = rate >= 1e9 ? [rate / 1e9, 'GB/s'] : [rate / 1e6, 'MB/s'];
    return `${value.toPrecision(3).replace(/e\+\d+/, '')} ${unit}`;
}

/** Connects the buttons that start and cancel `work`, and its progress bar. `work` receives a function for the progress and a signal. */
export function task(name, work) {
    const [start, cancel, progress] = ['start', 'cancel', 'progress'].map((part) => byId(`${name}-${part}`));
    const message = byId(`${name}-message`);
    start.addEventListener('click', async () => {
        const control = new AbortController();
        cancel.onclick = () => control.abort();
        // A button with `aria-disabled` keeps the keyboard's focus. A button with `disabled` would lose it.
        if (start.getAttribute('aria-disabled') === 'true') return;
        start.setAttribute('aria-disabled', 'true');
        [cancel.hidden, progress.hidden, progress.value] = [false, false, 0];
        say(message, 'Running.');
        try {
            await work((share) => (progress.value = share), control.signal);
        } catch (error) {
            if (control.signal.aborted) say(message, 'Cancelled.');
            else say(message, error.message, 'error');
        } finally {
            start.removeAttribute('aria-disabled');
            [cancel.hidden, progress.hidden] = [true, true];
        }
    });
}
