"""The example of a guide: changes to files of the project, and the command that compiles the result.

A guide marks its example by comments. A code block follows each of the first three:

    <!-- example: create FILE -->                     the block is a new file
    <!-- example: insert into FILE after "LINE" -->   the block follows the one line of the file that contains LINE
    <!-- example: insert into FILE before "LINE" -->  the block precedes that line
    <!-- example: replace in FILE "OLD" by "NEW" -->  OLD, which the file contains once, becomes NEW; without a block
    <!-- example: compile COMMAND -->                 run in the changed copy; without a block

A table whose head begins with `file` names every file that the guide tells the reader to touch.
"""

import pathlib
import re
import shlex
from dataclasses import dataclass

_MARK = re.compile(r"<!-- example: (.*?) -->\n(?:\n*```\w*\n(.*?)^```$)?", re.S | re.M)


class Wrong(Exception):
    """The error that the guide and the project do not fit together."""


@dataclass(frozen=True)
class Change:
    kind: str
    file: str
    anchor: str = ""
    text: str = ""

    def apply(self, root):
        path = pathlib.Path(root, self.file)
        if self.kind == "create":
            if path.exists():
                raise Wrong(f"{self.file} exists already")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text, encoding="utf-8")
            return
        if not path.exists():
            raise Wrong(f"there is no file {self.file}")
        content = path.read_text(encoding="utf-8")
        if self.kind == "replace":
            self.check_once(content.count(self.anchor))
            path.write_text(content.replace(self.anchor, self.text), encoding="utf-8")
            return
        lines = content.splitlines(keepends=True)
        found = [number for number, line in enumerate(lines) if self.anchor in line]
        self.check_once(len(found))
        at = found[0] + (self.kind == "after")
        path.write_text("".join([*lines[:at], self.text, *lines[at:]]), encoding="utf-8")

    def check_once(self, count):
        if count != 1:
            raise Wrong(f"{self.file} contains {self.anchor!r} {count} times, not once")


@dataclass(frozen=True)
class Example:
    changes: tuple
    commands: tuple
    # The files that the table of the guide names.
    files: frozenset


def parse(page):
    """The example of a guide."""
    changes, commands = [], []
    for mark in _MARK.finditer(page):
        words, block = shlex.split(mark[1]), mark[2]
        match words:
            case ["create", file] if block:
                changes.append(Change("create", file, text=block))
            case ["insert", "into", file, ("after" | "before") as kind, anchor] if block:
                changes.append(Change(kind, file, anchor, block))
            case ["replace", "in", file, old, "by", new]:
                changes.append(Change("replace", file, old, new))
            case ["compile", *command] if command:
                commands.append(tuple(command))
            case _:
                raise Wrong(f"the comment is not understood, or has no block: {mark[1]}")
    if not changes or not commands:
        raise Wrong("the guide has no example with a command that compiles it")
    return Example(tuple(changes), tuple(commands), frozenset(table(page)))


def table(page):
    """The paths in the first column of the table of files. `NAME` stands for a new file."""
    found, inside = set(), False
    for line in page.splitlines():
        if line.startswith("| file"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside:
            found.update(re.findall(r"`([^`]+/[^`]+)`", line.split("|")[1]))
    return found


def apply(example, root):
    """Makes the changes of the example in the copy of the project in this folder. Afterwards, all files of the table must exist,
    and the table must contain all files of the example."""
    for change in example.changes:
        change.apply(root)
    missing = {change.file for change in example.changes} - example.files
    if missing:
        raise Wrong(f"the table of files lacks {', '.join(sorted(missing))}")
    absent = {file for file in example.files if not pathlib.Path(root, file).exists()}
    if absent:
        raise Wrong(f"the table names files that do not exist: {', '.join(sorted(absent))}")
