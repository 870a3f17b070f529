# SPDX-License-Identifier: Apache-2.0
"""unpack_perfetto.py FILE... - a trace of Perfetto's format on standard output, with compressed packets unpacked, as its trace_processor does it.

As a module: unpack(data) returns that of bytes.
"""
import sys
import zlib

PACKET = 1 << 3 | 2
COMPRESSED = 50 << 3 | 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def unpack(data):
    parts, at = [], 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        assert key == PACKET, f"not a packet: {key:#x} at {begin}"
        size, at = varint(data, at)
        assert at + size <= len(data), "the last packet is cut"
        key, inner = varint(data, at) if size else (0, at)
        if key == COMPRESSED:
            packed, inner = varint(data, inner)
            assert inner + packed == at + size, "something beside the compressed packets"
            unpacked = zlib.decompress(data[inner:at + size])
            assert unpacked[:1] == bytes([PACKET]), "packed, and no packets"
            parts.append(unpacked)
        else:
            parts.append(data[begin:at + size])
        at += size
    return b"".join(parts)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        sys.stdout.buffer.write(unpack(open(path, "rb").read()))
