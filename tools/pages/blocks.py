"""The code blocks of a page in Markdown, and the comparison of printed output."""

import re
from dataclasses import dataclass

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"<!-- output -->\s*\Z")
# Matches a call of `print` with its expected output as a comment, such as `print(1 + 1) # 2`.
COMMENT = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


@dataclass
class Block:
    """A block of code. `is_output` is true if it shows the output of the block before it."""

    line: int
    language: str
    text: str
    is_output: bool


def of(page):
    """The blocks of a page, in order."""
    return [
        Block(
            page.count("\n", 0, found.start()) + 1,
            found[2],
            re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE),
            bool(OUTPUT.search(page[: found.start()])),
        )
        for found in FENCE.finditer(page)
    ]


def end_of(printed, lines=12):
    """The last lines of an output."""
    return "\n".join(printed.strip().splitlines()[-lines:])


def pattern(expected):
    """A regular expression for the expected output, in which `...` stands for any text."""
    return r".*".join(re.escape(part) for part in expected.strip().split("..."))


def difference(expected, printed):
    """The difference between the expected and the printed output as a message, or None. Spaces at the end of a line are
    ignored."""
    if printed is None:
        return "there is no output to compare with: the block before was not run"
    printed = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    if re.fullmatch(pattern(expected), printed, re.DOTALL):
        return None
    return f"the page shows\n{expected.strip()}\nbut the output is\n{printed}"


def difference_of_comments(code, printed):
    """Compares the comments after calls of `print` with the output, as `difference` does. The comments must be printed
    in their order."""
    at = 0
    for expected in COMMENT.findall(code):
        whole_lines = rf"^{pattern(expected)}[ \t]*$"
        found = re.compile(whole_lines, re.MULTILINE | re.DOTALL).search(printed, at)
        if not found:
            return f"the page shows\n{expected}\nbut the output is\n{printed.strip()}"
        at = found.end()
    return None
