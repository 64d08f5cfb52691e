// Draws a plot of the rate by batch size with logarithmic axes, as in Figure 36-9 of the chapter.

import { element, size, svg } from './dom.js';

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [800, 440, 86, 40, 16, 62];
const SHAPES = ['', '7 4', '2 3', '9 3 2 3', '16 3'];

/** `lines` are `{label, points: [[bytes, rate]]}`; `marks` are `{label, at: [bytes, rate]}`. */
export function plot(title, lines, marks) {
    const all = [...lines.flatMap(({ points }) => points), ...marks.map(({ at }) => at)];
    const [sizes, rates] = [0, 1].map((axis) => all.map((point) => point[axis]));
    const low = 10 ** Math.floor(Math.log10(Math.min(...rates)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(...rates)));
    const across = (bytes) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log(bytes / Math.min(...sizes))) / Math.max(Math.log(Math.max(...sizes) / Math.min(...sizes)), 1);
    const up = (rate) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.log(rate / low)) / Math.log(high / low);
    const drawing = svg('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}: the table below has the figures` });
    for (let rate = low; rate <= high; rate *= 10) {
        drawing.append(svg('path', { class: 'grid', d: `M${LEFT} ${up(rate)}H${WIDTH - RIGHT}` }));
        drawing.append(svg('text', { x: LEFT - 8, y: up(rate) + 5, 'text-anchor': 'end' }, (rate / 1e6).toLocaleString('en')));
    }
    for (const bytes of new Set(sizes)) {
        drawing.append(svg('path', { class: 'axis', d: `M${across(bytes)} ${HEIGHT - BOTTOM}v6` }));
        drawing.append(svg('text', { x: across(bytes), y: HEIGHT - BOTTOM + 24, 'text-anchor': 'middle' }, size(bytes)));
    }
    drawing.append(svg('path', { class: 'axis', d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }));
    drawing.append(svg('text', { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, 'text-anchor': 'middle' }, 'Bytes of a batch'));
    drawing.append(svg('text', { x: 18, y: (TOP + HEIGHT - BOTTOM) / 2, 'text-anchor': 'middle', transform: `rotate(-90 18 ${(TOP + HEIGHT - BOTTOM) / 2})` }, 'MB/s'));
    lines.forEach(({ points }, index) => {
        const path = points.map(([bytes, rate], number) => `${number ? 'L' : 'M'}${across(bytes)} ${up(rate)}`).join('');
        drawing.append(svg('path', { class: `line s${index}`, 'stroke-dasharray': SHAPES[index], d: path }));
        for (const [bytes, rate] of points) drawing.append(svg('circle', { class: `s${index}`, cx: across(bytes), cy: up(rate), r: 3.5 }));
    });
    for (const { at: [bytes, rate] } of marks) {
        drawing.append(svg('rect', { class: 'chapter', x: across(bytes) - 4.5, y: up(rate) - 4.5, width: 9, height: 9 }));
    }
    const key = (drawn, label) => element('li', {}, svg('svg', { viewBox: '0 0 28 12', 'aria-hidden': 'true' }, drawn), ` ${label}`);
    const legend = element('ul', { class: 'legend' });
    lines.forEach(({ label }, index) => legend.append(key(svg('path', { class: `line s${index}`, 'stroke-dasharray': SHAPES[index], d: 'M0 6H28' }), label)));
    if (marks.length > 0) {
        legend.append(key(svg('rect', { class: 'chapter', x: 10, y: 1.5, width: 9, height: 9 }), marks.map(({ label }) => label).join(', ')));
    }
    return element('figure', {}, element('figcaption', {}, title), drawing, legend);
}
