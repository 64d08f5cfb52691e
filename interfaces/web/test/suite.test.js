// Runs the shared suite of backends on the portable kernel with SIMD128.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const module = new WebAssembly.Module(readFileSync(process.env.LOCKSTEP_SUITE));

// After a trap, the state of an instance is unknown. So each check has its own instance.
function instance() {
    let printed = '';
    let exports;
    const text = (at, length) => Buffer.from(exports.memory.buffer, at, length).toString();
    const print = (at, length) => (printed += `${text(at, length)}\n`);
    ({ exports } = new WebAssembly.Instance(module, { env: { print_text: print } }));
    return { exports, text, printed: () => printed };
}

const { exports, text } = instance();

test('the suite has its checks', () => assert(exports.count() > 30));

for (let check = 0; check < exports.count(); check++) {
    test(text(exports.name(check), exports.name_length(check)), () => {
        const { exports, printed } = instance();
        try {
            exports.run(check);
        } catch (error) {
            assert.fail(printed() || error);
        }
    });
}
