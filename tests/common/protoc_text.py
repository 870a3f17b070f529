# SPDX-License-Identifier: Apache-2.0
"""protoc_text.py - messages of Protocol Buffers, as protoc decodes them, as dictionaries: field -> list of values."""
import collections
import re
import subprocess


def read(lines, string):
    """A message in protoc's text form; @string makes a value of the bytes of a string."""
    fields = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        key, _, value = line.partition(": ")
        if line.endswith(" {"):
            fields[line[:-2]].append(read(lines, string))
        elif value.startswith('"'):
            raw = re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(m[1], m[1]),
                         value[1:-1].encode())
            fields[key].append(string(raw))
        else:
            fields[key].append({"true": True, "false": False}.get(value) if value in ("true", "false") else int(value, 0))
    return fields


def decode(path, proto, message, string=bytes.decode):
    """The message in a file, by the definitions in @proto, which know all of its fields."""
    folder = proto.rsplit("/", 1)[0]
    with open(path, "rb") as data:
        text = subprocess.run(["protoc", "--proto_path=" + folder, "--decode=" + message, proto], stdin=data, capture_output=True, check=True).stdout.decode()
    # Unknown fields have numbers instead of names.
    assert not re.search(r"^ *[0-9]+[: ]", text, re.M), "an unknown field"
    return read(iter(text.splitlines()), string)
