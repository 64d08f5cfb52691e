// Tests that the example of the README runs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

test('the example of the README', async () => {
    const [, example] = /```js\n(.*?)```/s.exec(readme);
    const [, names, rest] = /^import \{ (.*?) \} from 'lockstep-aes';\n(.*)$/s.exec(example);
    const { web } = await import('./package.js');
    const printed = [];
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
    await new AsyncFunction('web', 'console', `const { ${names} } = web;\n${rest}`)(web, { log: (text) => printed.push(text) });
    assert.deepEqual(printed, ['the content of a file', 'a text']);
});
