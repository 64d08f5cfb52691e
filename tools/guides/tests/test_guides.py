"""Tests of the check of the guides: examples that do not fit the project must be found."""

import pathlib
import tempfile
import unittest

import example

PAGE = """
| file | change |
|---|---|
| `src/new.rs` | a new file |
| `src/lib.rs`, `src/other.rs` | two files |

| word | meaning |
|---|---|
| `a/b` | not a file |

<!-- example: create src/new.rs -->

```rust
fn new() {}
```

Text.
<!-- example: insert into src/lib.rs after "mod a;" -->
```rust
mod new;
```
<!-- example: insert into src/lib.rs before "mod a;" -->
```rust
mod first;
```
<!-- example: replace in src/lib.rs "[u8; 6]" by "[u8; 7]" -->
<!-- example: compile cargo test -p x -->
"""


class Guides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "src").mkdir()
        (self.root / "src/lib.rs").write_text("mod a;\nmod b;\nconst X: [u8; 6];\n")
        (self.root / "src/other.rs").write_text("")

    def apply(self, page=PAGE):
        example.apply(example.parse(page), self.root)

    def refused(self, page, words):
        with self.assertRaisesRegex(example.Wrong, words):
            self.apply(page)

    def test_changes_are_applied(self):
        self.apply()
        self.assertEqual((self.root / "src/new.rs").read_text(), "fn new() {}\n")
        self.assertEqual((self.root / "src/lib.rs").read_text(), "mod first;\nmod a;\nmod new;\nmod b;\nconst X: [u8; 7];\n")
        self.assertEqual(example.parse(PAGE).commands, (("cargo", "test", "-p", "x"),))

    def test_an_example_must_fit_the_files(self):
        self.refused(PAGE.replace('after "mod a;"', 'after "mod c;"'), "contains 'mod c;' 0 times")
        self.setUp()
        self.refused(PAGE.replace('after "mod a;"', 'after "mod"'), "times, not once")
        self.setUp()
        self.refused(PAGE.replace('"[u8; 6]"', '"[u8; 9]"'), "0 times")
        self.setUp()
        self.refused(PAGE.replace("create src/new.rs", "create src/other.rs"), "exists already")

    def test_the_table_names_every_file(self):
        self.refused(PAGE.replace("| `src/new.rs` |", "| a file |"), "the table of files lacks src/new.rs")
        self.setUp()
        self.refused(PAGE.replace("`src/other.rs`", "`src/none.rs`"), "do not exist: src/none.rs")

    def test_marks_that_are_not_understood_are_refused(self):
        self.refused(PAGE.replace("example: compile cargo test -p x", "example: compile"), "not understood")
        self.refused(PAGE.replace("example: create", "example: make"), "not understood")
        self.refused(PAGE.replace("<!-- example: compile cargo test -p x -->", ""), "no example")


if __name__ == "__main__":
    unittest.main()
