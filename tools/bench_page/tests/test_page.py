"""Tests of the parts that need no browser. The controls of check.py test the rest in the browser itself, in every run."""

import os
import struct
import sys
import unittest
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import plot
import png


def picture(rows, colour=2):
    """A PNG with these rows. Each row consists of the number of its filter and of its bytes."""
    size = 3 if colour == 2 else 4

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", len(rows[0][1]) // size, len(rows), 8, colour, 0, 0, 0)
    data = zlib.compress(b"".join(bytes([how]) + line for how, line in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class Pictures(unittest.TestCase):
    def test_every_filter(self):
        # Each row has the pixels 10, 20, 30 and 40, 50, 60 after its filter is undone.
        rows = [
            (0, bytes([10, 20, 30, 40, 50, 60])),
            (1, bytes([10, 20, 30, 30, 30, 30])),
            (2, bytes(6)),
            (3, bytes([5, 10, 15, 15, 15, 15])),
            (4, bytes(6)),
        ]
        self.assertEqual(png.pixels(picture(rows)), (2, 5, {bytes([10, 20, 30]), bytes([40, 50, 60])}))

    def test_transparency_is_ignored(self):
        self.assertEqual(png.pixels(picture([(0, bytes([1, 2, 3, 255]))], colour=6)), (1, 1, {bytes([1, 2, 3])}))


class Plots(unittest.TestCase):
    def test_plots_are_found_with_their_titles(self):
        one, two = "<svg a>\n<title>A &lt; b</title></svg>\n", "<svg b><title>c</title>\n</svg>\n"
        found = plot.plots_of(f"<figure>\n{one}</figure>\n<figure>{two}</figure>")
        self.assertEqual((found, [plot.title_of(svg) for svg in found]), ([one, two], ["A < b", "c"]))


if __name__ == "__main__":
    unittest.main()
