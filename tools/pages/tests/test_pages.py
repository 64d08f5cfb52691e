"""Tests of the runner: an example that fails, and output that differs, must be found."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import blocks  # noqa: E402
import run  # noqa: E402


def failures(text):
    """The failures of a page, with its counts."""
    with tempfile.TemporaryDirectory() as path:
        os.makedirs(f"{path}/built/package")
        page = run.Page("docs/test.md", run.Folder(f"{path}/page", "/bin/true", f"{path}/built"))
        return page.run(text), page.counts


class Pages(unittest.TestCase):
    def assert_runs(self, text):
        found, _ = failures(text)
        self.assertEqual(found, [])

    def assert_fails(self, text, why):
        found, _ = failures(text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(why, found[0])

    def test_shell(self):
        self.assert_runs("```sh\ntest -f report.pdf && echo a > b\n```\nand\n```sh\ntest -f b\n```\n")
        self.assert_fails("text\n\n```sh\ncat nothing\n```\n", "docs/test.md:3: exit status 1")
        self.assert_fails("```sh\nfalse | true\n```\n", "exit status 1")

    def test_python_keeps_names(self):
        self.assert_runs("```python\na = 1\n```\n```python\nassert a == 1\n```\n")
        self.assert_fails("```python\nprint(b)\n```\n", "NameError")
        self.assert_fails("```python\nraise SystemExit\n```\n", "SystemExit")

    def test_statements_of_other_processes(self):
        self.assert_runs("```python\nimport os\nassert os.system('echo x; cat') == 0\nprint(1)  # 1\n```\n")
        self.assert_fails("```python\nimport os\nos._exit(3)\n```\n", "the interpreter has ended")

    def test_what_is_to_be_replaced(self):
        self.assert_fails("a @@WORD@@ b\n", "@@WORD@@")

    def test_printed_output(self):
        page = "```sh\necho one 2 three\n```\n\n<!-- output -->\n```text\n{}\n```\n"
        self.assert_runs(page.format("one ... three"))
        self.assert_fails(page.format("one 2"), "the page shows")
        self.assert_runs("```python\nprint(1)  # 1\nprint('a b')  # a ...\n```\n")
        for printed in (2, 12, 21):
            self.assert_fails(f"```python\nprint({printed})  # 1\n```\n", "the page shows")

    def test_passphrases(self):
        self.assert_runs("```sh\nread -rsp 'Passphrase: ' a </dev/tty; read -rsp 'The same again: ' b </dev/tty; [ -n \"$a\" ] && [ \"$a\" = \"$b\" ]\n```\n")

    def test_compilers(self):
        self.assert_runs("```c\nint f(void) { return 0; }\n```\n```cpp\nclass A {};\n```\n")
        self.assert_fails("```c\nint f(void) { return a; }\n```\n", "undeclared")

    def test_languages_that_nothing_compiles(self):
        self.assert_fails("```rust\nfn main() {}\n```\n", "nothing compiles")

    def test_make_checks_targets(self):
        self.assert_runs("```sh\nmake test\n```\n")
        self.assert_fails("```sh\nmake nonsense\n```\n", "nonsense")

    def test_counts(self):
        _, counts = failures("```sh\ntrue\n```\n```text\n```\n```c\nint a;\n```\n")
        self.assertEqual(counts, {"run": 1, "compiled": 1, "compiled elsewhere": 0, "left out": 0})

    def test_indented_blocks(self):
        (block,) = blocks.of("- item\n\n  ```sh\n  echo a\n  ```\n")
        self.assertEqual((block.line, block.text), (3, "echo a\n"))

    def test_every_block_that_is_left_out_exists(self):
        for name, part, _ in run.LEFT_OUT:
            with open(os.path.join(run.ROOT, name), encoding="utf-8") as file:
                found = [block for block in blocks.of(file.read()) if part in block.text]
            self.assertTrue(found, f"{name}: {part}")


if __name__ == "__main__":
    unittest.main()
