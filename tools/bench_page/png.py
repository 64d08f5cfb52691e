"""Reads pictures as browsers make them."""

import struct
import zlib


def pixels(png):
    """Width, height and rows of RGB triples of an 8-bit PNG without interlacing, as browsers make them."""
    place, data = 8, b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place:place + 8])
        body = png[place + 8:place + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
        elif kind == b"IDAT":
            data += body
        place += 12 + length
    size = 3 if colour == 2 else 4
    raw, line, rows = zlib.decompress(data), width * size, []
    before = bytearray(line)
    for number in range(height):
        start = number * (line + 1)
        how, now = raw[start], bytearray(raw[start + 1:start + 1 + line])
        for i in range(line):
            left = now[i - size] if i >= size else 0
            up, corner = before[i], before[i - size] if i >= size else 0
            if how == 1:
                now[i] = now[i] + left & 255
            elif how == 2:
                now[i] = now[i] + up & 255
            elif how == 3:
                now[i] = now[i] + (left + up) // 2 & 255
            elif how == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                now[i] = now[i] + near[2] & 255
        rows.append(now)
        before = now
    return width, height, {bytes(row[i:i + 3]) for row in rows for i in range(0, line, size)}
