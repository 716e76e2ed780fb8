"""Draws the logo of the service, a seal with a check mark: as SVG, or as an icon of 16 and 32 pixels.

usage: mark.py OUTPUT.svg|OUTPUT.ico
"""
import math
import struct
import sys
import zlib

SIZE = 32
CENTRE, RADIUS, TEETH, TOOTH = SIZE / 2, 13.6, 12, 1.6
TICK, STROKE = [(9.6, 16.6), (14.2, 21.2), (22.6, 11.4)], 3.4
SEAL, PAPER = (0x1a, 0x40, 0x5c), (0xff, 0xff, 0xff)
FINE = 4  # samples per pixel in each direction


def rim():
    """Yields the outline of the seal."""
    for step in range(24 * TEETH):
        angle = 2 * math.pi * step / (24 * TEETH)
        radius = RADIUS + TOOTH * math.cos(TEETH * angle)
        yield CENTRE + radius * math.cos(angle), CENTRE + radius * math.sin(angle)


def in_seal(x, y):
    angle = math.atan2(y - CENTRE, x - CENTRE)
    return math.hypot(x - CENTRE, y - CENTRE) <= RADIUS + TOOTH * math.cos(TEETH * angle)


def on_tick(x, y):
    for (ax, ay), (bx, by) in zip(TICK, TICK[1:]):
        along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)
        along = min(1, max(0, along))
        if math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)) <= STROKE / 2:
            return True
    return False


def pixel(column, row, scale):
    """Returns red, green, blue and opacity."""
    seal = tick = 0
    for fine in range(FINE * FINE):
        x = (column + (fine % FINE + 0.5) / FINE) * scale
        y = (row + (fine // FINE + 0.5) / FINE) * scale
        inside = in_seal(x, y)
        seal += inside
        tick += inside and on_tick(x, y)
    if not seal:
        return bytes(4)
    mixed = [round(a + (b - a) * tick / seal) for a, b in zip(SEAL, PAPER)]
    return bytes([*mixed, round(255 * seal / (FINE * FINE))])


def png(size):
    """Encodes a PNG image (https://www.w3.org/TR/png-3/)."""
    def chunk(name, data):
        return struct.pack(">L", len(data)) + name + data + \
            struct.pack(">L", zlib.crc32(name + data))
    rows = b"".join(b"\0" + b"".join(pixel(column, row, SIZE / size) for column in range(size))
                    for row in range(size))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">LLBBBBB", size, size, 8, 6, 0, 0, 0)) \
        + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def icon(sizes):
    """Encodes an ICO file: a directory of images, then the images."""
    pictures = [png(size) for size in sizes]
    directory, at = struct.pack("<HHH", 0, 1, len(sizes)), 6 + 16 * len(sizes)
    for size, picture in zip(sizes, pictures):
        directory += struct.pack("<BBBBHHLL", size, size, 0, 0, 1, 32, len(picture), at)
        at += len(picture)
    return directory + b"".join(pictures)


def svg():
    edge = " ".join(f"{x:.2f},{y:.2f}" for x, y in rim())
    tick = " ".join(f"{x},{y}" for x, y in TICK)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}">\n'
            f'<polygon fill="#{bytes(SEAL).hex()}" points="{edge}"/>\n'
            f'<polyline fill="none" stroke="#{bytes(PAPER).hex()}" stroke-width="{STROKE}" '
            f'stroke-linecap="round" stroke-linejoin="round" points="{tick}"/>\n</svg>\n').encode()


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(svg() if sys.argv[1].endswith(".svg") else icon((16, 32)))
