#!/usr/bin/env python3
"""Finds texts that cover each other or a mark of the legend, or extend beyond the edge, in the plots of the documentation.

    tools/picture_texts.py [PICTURE...]    PICTURE: docs/scale/time.svg; all SVG files in docs by default
    tools/picture_texts.py --self-test

The width of a text is that in DejaVu Sans, which is wider than other usual fonts without serifs.
"""

import glob
import itertools
import os
import re
import sys
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SVG = "{http://www.w3.org/2000/svg}"
# The width of each character as a fraction of the font size, rounded up.
GROUPS = {0.3: "ijlIJ'", 0.32: " .,", 0.42: "frt-:;/()[]!|", 0.59: "ckszFL?*_", 0.7: "ABCKRVXZ", 0.82: "wDGHNOQUY", 0.87: "M+=<>~#", 1.0: "mW%@"}
WIDTHS = {character: width for width, characters in GROUPS.items() for character in characters}
USUAL = 0.64
BOLD = 1.12
# The heights of texts above and below the base line, as fractions of the font size.
ABOVE, BELOW = 0.74, 0.21


# The maximum width and height in pixels of a mark in a legend. Larger rectangles are parts of the plot.
MARK = 14
LINE = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)")


def number(text):
    return float(text.removesuffix("px"))


def box(text, size):
    """The left, upper, right and lower edge of a text."""
    size = number(text.get("font-size", size))
    words = "".join(text.itertext())
    width = size * sum(WIDTHS.get(character, USUAL) for character in words)
    if text.get("font-weight") == "bold":
        width *= BOLD
    x, y = number(text.get("x", "0")), number(text.get("y", "0"))
    before = width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
    if text.get("transform", "").startswith("rotate(-90"):
        return x - ABOVE * size, y + before - width, x + BELOW * size, y + before
    return x - before, y - ABOVE * size, x - before + width, y + BELOW * size


def marks(svg):
    """The squares and lines that are marks of the legends."""
    for rect in svg.iter(SVG + "rect"):
        if rect.get("width").endswith("%") or max(number(rect.get("width")), number(rect.get("height"))) > MARK:
            continue
        x, y, width, height = (number(rect.get(name)) for name in ("x", "y", "width", "height"))
        yield x, y, x + width, y + height
    for path in svg.iter(SVG + "path"):
        if line := LINE.fullmatch(path.get("d")):
            x, y, width = map(float, line.groups())
            yield x, y - 1, x + width, y + 1


def cover(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def problems(picture):
    """The texts of a picture that cannot be read, as messages. The picture is given as SVG."""
    svg = xml.etree.ElementTree.fromstring(picture)
    size = svg.get("font-size", "16")
    width, height = (number(svg.get(name)) for name in ("width", "height"))
    texts = [("".join(text.itertext()), box(text, size)) for text in svg.iter(SVG + "text")]
    for words, (left, top, right, bottom) in texts:
        if left < 0 or top < 0 or right > width or bottom > height:
            yield f"`{words}` extends beyond the edge"
        if any(cover((left, top, right, bottom), mark) for mark in marks(svg)):
            yield f"`{words}` covers a mark of the legend"
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        if cover(a, b):
            yield f"`{one}` and `{other}` cover each other"


def self_test():
    def found(*texts):
        head = '<svg xmlns="http://www.w3.org/2000/svg" width="890" height="446" font-size="11">'
        return list(problems(head + "".join(texts) + "</svg>"))

    # In these cases, two texts of a legend overlap. docs/papers/cell/ctr4.svg once had this mistake.
    long = '<text x="354" y="404">shuffle, quadword shift</text>'
    assert len(found(long, '<rect x="478" y="395" width="10" height="10" fill="#edc948"/><text x="492" y="404">load</text>')) == 1
    assert len(found(long, '<text x="480" y="404">load</text>')) == 1
    assert len(found(long, '<path d="M478 400h28" stroke="#333"/>')) == 1
    assert found(long, '<text x="530" y="404">load</text>') == []
    assert found(long, '<text x="354" y="422">load</text>') == []
    assert len(found('<text x="60" y="404" text-anchor="end">shuffle, quadword shift</text>')) == 1
    turned = '<text x="16" y="200" text-anchor="middle" transform="rotate(-90 16 200)">throughput in GB/s</text>'
    assert found(turned, '<text x="60" y="200" text-anchor="end">0.5</text>') == []
    assert len(found(turned, '<text x="10" y="230">0.5</text>')) == 1
    assert len(found('<text x="880" y="10">text</text>')) == 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(__doc__)
    names = sys.argv[1:] or sorted(glob.glob(f"{ROOT}/docs/**/*.svg", recursive=True))
    failures = 0
    for name in names:
        with open(name, encoding="utf-8") as file:
            for problem in problems(file.read()):
                print(f"{os.path.relpath(name, ROOT)}: {problem}", file=sys.stderr)
                failures += 1
    if failures:
        sys.exit(1)
    print(f"the texts of {len(names)} pictures do not cover each other")


if __name__ == "__main__":
    main()
