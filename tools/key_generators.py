#!/usr/bin/env python3
"""Checks that pages and examples make keys and nonces by cryptographic generators.

    tools/key_generators.py              check the pages, the documentation comments and the examples
    tools/key_generators.py --self-test  check that bad examples are found, and good ones are not

People copy examples. A line that makes a key, a nonce, an IV or a passphrase must not use a generator for simulations, whose output
can be predicted, or a constant. Known-answer vectors are no such lines: they have their bytes in hexadecimal digits.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Only pages, documentation and examples are searched. Tests, and programs that measure or search, use fixed keys so that their
# results can be repeated.
PAGES = ["*.md", "docs/*.md", "interfaces/python/README.md"]
DOCUMENTED = ["engine/*/src/**/*.rs", "devices/*/src/**/*.rs", "library/*/src/**/*.rs", "interfaces/*/src/**/*.rs", "interfaces/python/python/**/*.py"]
EXAMPLES = ["interfaces/capi/examples/**/*.[ch]*", "interfaces/cli/examples/**/*", "interfaces/python/examples/**/*"]

SECRET = r"(?:\w*key|keys|nonces?|iv|ivs|salt|passphrase|password)"
# Matches `key = `, `key: T = `, `key=`, `"key": ` and `let key: [u8; 32] = `, but not `==`.
ASSIGNED = re.compile(rf"""(?<![\w.])["']?{SECRET}(?:\[\w*\])?["']?\s*(?::\s*&?(?:mut\s)?[\[\]\w; ]+)?\s*(?::|=(?!=))""", re.IGNORECASE)
CALLED = re.compile(rf"(?:FileKey::from_bytes|AeadKey::new|CipherKey::new|(?<!\w)Key::new|AES\w+|XAES256GCM|Generator)\(")
WEAK = re.compile(
    r"""torch\.rand\w* | (?:numpy|np|jax|cupy|cp)\.random\b | \bdefault_rng\b | (?<![\w.])random\.(?:rand\w*|getrandbits|choices?|sample|uniform)
      | \$RANDOM\b | \b(?:s?rand|rand_r|drand48|lrand48)\s*\( | \bMath\.random\b | \bfastrand\b | \bmt19937\b
      | (?<![\w.])bytes\(\s*(?:16|24|32|48|64)\s*\) | (?<![\w.])b["'](?:\\x)?\w{1,2}["']\s*\*\s*\d+
      | &?\[\s*(?:0x)?[0-9a-f]+(?:u8)?\s*;\s*(?:16|24|32|48|64)\s*\] | =\s*\{\s*0\s*\}""",
    re.VERBOSE | re.IGNORECASE,
)


def bad_lines(code):
    """Returns the numbers and the texts of the lines that make a secret by a weak generator."""
    for number, line in code:
        made = [*ASSIGNED.finditer(line), *CALLED.finditer(line)]
        if any(WEAK.search(line, one.start()) for one in made):
            yield number, line.strip()


def blocks_of_page(text):
    """The lines in the code blocks of a page."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code:
            yield number, line


def comments_of_rust(text):
    """The lines in the code blocks of documentation comments."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*//[/!] ?(.*)", line)
        if not comment:
            is_code = False
        elif comment[1].startswith("```"):
            is_code = not is_code
        elif is_code:
            yield number, comment[1]


def docstrings(text):
    """The lines of docstrings, which are within triple quotes."""
    is_inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if is_inside or '"""' in line:
            yield number, line
        is_inside ^= line.count('"""') % 2 == 1


def files(patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, ROOT), file.read()


def check():
    found, lines = [], 0
    readers = [(PAGES, lambda path: blocks_of_page), (EXAMPLES, lambda path: lambda text: enumerate(text.splitlines(), 1))]
    readers.append((DOCUMENTED, lambda path: docstrings if path.endswith(".py") else comments_of_rust))
    for patterns, reader in readers:
        for path, text in files(patterns):
            code = list(reader(path)(text))
            lines += len(code)
            found += [f"{path}:{number}: {line}" for number, line in bad_lines(code)]
    if lines < 500:
        sys.exit(f"key_generators: only {lines} lines of examples were found: the patterns of files are wrong")
    if found:
        print("\n".join(found))
        sys.exit(
            "key_generators: these examples make a secret by a generator that is not cryptographic, or by a constant: use the"
            " operating system's generator (secrets.token_bytes, generate_key, FileKey::generate, `lockstep keygen`)"
        )


def self_test():
    bad = [
        'key = torch.randint(256, (32,), dtype=torch.uint8, device="cuda")',
        "nonces = torch.randint(256, (64, 16), dtype=torch.uint8)",
        "key = bytes(random.randbytes(32))",
        "keys = numpy.random.bytes(32)",
        "key = np.random.default_rng(1).bytes(32)",
        'storage_options={"lockstep": {"key": bytes(32)}}',
        "lockstep.open(path, key=bytes(16))",
        "cipher = AESGCM(bytes(32))",
        "let key = FileKey::from_bytes(&[7; 32])?;",
        "let key: [u8; 32] = [0u8; 32];",
        "unsigned char key[32]; for (i = 0; i < 32; i++) key[i] = rand();",
        "KEY=$RANDOM$RANDOM",
        'key = b"\\x00" * 32',
    ]
    good = [
        "key = secrets.token_bytes(32)",
        "key = torch.frombuffer(bytearray(secrets.token_bytes(32)), dtype=torch.uint8).cuda()",
        "weights = torch.randn(64, 4096)",
        "let key = FileKey::generate()?;",
        "key = lockstep.generate_key()",
        "numbers = numpy.random.Generator(BitGenerator(key)).normal(size=10)",
        "tag = bytes(16)",
        "if key == bytes(32):",
        'Key::new(&hex("2b7e151628aed2a6abf7158809cf4f3c"))',
    ]
    for lines, is_bad in ((bad, True), (good, False)):
        for line in lines:
            if bool(list(bad_lines([(1, line)]))) != is_bad:
                sys.exit(f"key_generators: self-test: {'not found' if is_bad else 'found'}: {line}")
    page = "text\n```python\nkey = bytes(32)\n```\nkey = bytes(32)\n"
    rust = "/// ```\n/// let key = Key::new(&[0; 16])?;\n/// ```\nlet key = Key::new(&[0; 16])?;\n"
    python = 'key = bytes(32)\n"""Text.\n\nkey = bytes(32)\n"""\n'
    for reader, text in ((blocks_of_page, page), (comments_of_rust, rust), (docstrings, python)):
        if len(list(bad_lines(reader(text)))) != 1:
            sys.exit(f"key_generators: self-test: {reader.__name__}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif not sys.argv[1:]:
        check()
    else:
        sys.exit(__doc__.strip())
