"""Creates a small web font (WOFF) from a TrueType font, with the Latin letters and signs that pages use.

Glyphs keep their numbers, so that references stay valid. Unused glyphs become empty, and glyphs after the last used
one are removed.

usage: subset_font.py OUTPUT FONT
"""
import struct
import sys
import zlib

CHARACTERS = [*range(0x20, 0x7f), *range(0xa0, 0x180), 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2018,
              0x2019, 0x201a, 0x201c, 0x201d, 0x201e, 0x2020, 0x2022, 0x2026, 0x2030, 0x2039, 0x203a,
              0x20ac, 0x2116, 0x2122, 0x2190, 0x2191, 0x2192, 0x2193, 0x2212, 0x2713]
KEPT = ["OS/2", "cmap", "cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "name", "post",
        "prep"]
MORE_COMPONENTS, WORDS, SCALE, XY_SCALE, TWO_BY_TWO = 0x20, 0x01, 0x08, 0x40, 0x80


def read_tables(data):
    count = struct.unpack(">H", data[4:6])[0]
    tables = {}
    for at in range(12, 12 + 16 * count, 16):
        tag, _, offset, size = struct.unpack(">4sLLL", data[at:at + 16])
        tables[tag.decode()] = data[offset:offset + size]
    return tables


def character_map(table):
    """Reads the Unicode subtable of format 4 or 12."""
    found = {}
    for at in range(4, 4 + 8 * struct.unpack(">H", table[2:4])[0], 8):
        platform, _, offset = struct.unpack(">HHL", table[at:at + 8])
        form = struct.unpack(">H", table[offset:offset + 2])[0]
        if platform not in (0, 3):
            continue
        if form == 12:
            for group in range(struct.unpack(">L", table[offset + 12:offset + 16])[0]):
                begin = offset + 16 + 12 * group
                first, last, glyph = struct.unpack(">LLL", table[begin:begin + 12])
                found.update((code, glyph + code - first) for code in range(first, last + 1))
        elif form == 4:
            count = struct.unpack(">H", table[offset + 6:offset + 8])[0] // 2
            ends, starts, deltas, ranges = (offset + 14, offset + 16 + 2 * count,
                                            offset + 16 + 4 * count, offset + 16 + 6 * count)
            for i in range(count):
                end, start, delta, distance = (
                    struct.unpack(">H", table[base + 2 * i:base + 2 * i + 2])[0]
                    for base in (ends, starts, deltas, ranges))
                for code in range(start, end + 1):
                    place = ranges + 2 * i + distance + 2 * (code - start)
                    glyph = code if not distance else struct.unpack(">H", table[place:place + 2])[0]
                    if code != 0xffff and (glyph or not distance):
                        found[code] = (glyph + delta) & 0xffff
    return found


def components(outline):
    """Returns the components of a composite glyph."""
    if len(outline) < 10 or struct.unpack(">h", outline[:2])[0] >= 0:
        return
    at, flags = 10, MORE_COMPONENTS
    while flags & MORE_COMPONENTS:
        flags, glyph = struct.unpack(">HH", outline[at:at + 4])
        yield glyph
        at += 4 + (4 if flags & WORDS else 2)
        at += 2 if flags & SCALE else 4 if flags & XY_SCALE else 8 if flags & TWO_BY_TWO else 0


def write_map(codes):
    """Builds a table with a format 4 subtable, with one segment for each run of codes and glyphs."""
    runs = []
    for code, glyph in sorted(codes.items()):
        if runs and code == runs[-1][1] + 1 and glyph - code == runs[-1][2]:
            runs[-1][1] = code
        else:
            runs.append([code, code, glyph - code])
    runs.append([0xffff, 0xffff, 1])
    count, power = len(runs), len(runs).bit_length() - 1
    body = struct.pack(">HHHH", 2 * count, 2 << power, power, 2 * count - (2 << power))
    body += b"".join(struct.pack(">H", run[1]) for run in runs) + b"\0\0"
    body += b"".join(struct.pack(">H", run[0]) for run in runs)
    body += b"".join(struct.pack(">H", run[2] & 0xffff) for run in runs) + b"\0\0" * count
    return struct.pack(">HHHHLHHH", 0, 1, 3, 1, 12, 4, 6 + len(body), 0) + body


def subset(tables):
    long_places = struct.unpack(">h", tables["head"][50:52])[0]
    unit, scale = (">L", 1) if long_places else (">H", 2)
    places = [scale * place[0] for place in struct.iter_unpack(unit, tables["loca"])]
    outlines = [tables["glyf"][a:b] for a, b in zip(places, places[1:])]
    known = character_map(tables["cmap"])
    codes = {code: known[code] for code in CHARACTERS if known.get(code)}
    used, new = set(), {0, *codes.values()}
    while new:
        used |= new
        new = {part for glyph in new for part in components(outlines[glyph])} - used
    count = max(used) + 1
    glyf, loca = b"", [0]
    for number in range(count):
        outline = outlines[number] if number in used else b""
        glyf += outline + b"\0" * (-len(outline) % 4)
        loca.append(len(glyf))
    widths = struct.unpack(">H", tables["hhea"][34:36])[0]
    made = {tag: tables[tag] for tag in KEPT if tag in tables}
    made["glyf"] = glyf
    made["loca"] = b"".join(struct.pack(">L", place) for place in loca)
    made["cmap"] = write_map(codes)
    made["head"] = tables["head"][:8] + b"\0" * 4 + tables["head"][12:50] + struct.pack(">h", 1) \
        + tables["head"][52:]
    made["maxp"] = tables["maxp"][:4] + struct.pack(">H", count) + tables["maxp"][6:]
    if count <= widths:
        made["hmtx"] = tables["hmtx"][:4 * count]
        made["hhea"] = tables["hhea"][:34] + struct.pack(">H", count)
    else:
        made["hmtx"] = tables["hmtx"][:4 * widths + 2 * (count - widths)]
    made["post"] = struct.pack(">L", 0x00030000) + tables["post"][4:32]
    made["name"] = struct.pack(">HHH", 0, 0, 6)
    return made


def checksum(data):
    data += b"\0" * (-len(data) % 4)
    return sum(word[0] for word in struct.iter_unpack(">L", data)) & 0xffffffff


def write_woff(tables):
    """Encodes a WOFF file (https://www.w3.org/TR/WOFF/)."""
    directory, body = b"", b""
    start = 44 + 20 * len(tables)
    for tag, data in sorted(tables.items()):
        packed = zlib.compress(data, 9)
        if len(packed) >= len(data):
            packed = data
        directory += struct.pack(">4sLLLL", tag.encode(), start + len(body), len(packed), len(data),
                                 checksum(data))
        body += packed + b"\0" * (-len(packed) % 4)
    whole = 12 + 16 * len(tables) + sum(len(data) + -len(data) % 4 for data in tables.values())
    head = struct.pack(">4sLLHHLHHLLLLL", b"wOFF", 0x00010000, start + len(body), len(tables), 0,
                       whole, 1, 0, 0, 0, 0, 0, 0)
    return head + directory + body


if __name__ == "__main__":
    output, font = sys.argv[1:]
    with open(font, "rb") as given, open(output, "wb") as out:
        out.write(write_woff(subset(read_tables(given.read()))))
