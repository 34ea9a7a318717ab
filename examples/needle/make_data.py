#!/usr/bin/env python3
"""Single-needle retrieval in noise, as `ids` and `labels` for hybrid-run.

A row is `length` tokens of noise. At a uniformly drawn place stand a marker
and one token of the noise alphabet: the needle. The last token is the query;
its label is the needle, every other label is -100 (ignored). Finding the
needle takes two steps (a token whose predecessor is the marker, then recall),
so both kinds of layer are needed.

Token ids: 0 query, 1 marker, 2 .. 2+noise-1 the noise alphabet.
"""

import argparse
import array
import json
import os
import random
import struct
import sys

IGNORED = -100


def rows(count, length, noise, seed):
    """Yields (ids, labels) of `count` rows; a function of its arguments alone."""
    random_ = random.Random(f"needle {count} {length} {noise} {seed}")
    alphabet = range(2, 2 + noise)
    for _ in range(count):
        ids = random_.choices(alphabet, k=length)
        place = random_.randrange(length - 2)
        ids[place] = 1
        ids[-1] = 0
        yield ids, [IGNORED] * (length - 1) + [ids[place + 1]]


def write_safetensors(path, count, length, values):
    """Writes int32 `ids` and `labels` [count, length]; the file appears whole or not at all."""
    ids, labels = array.array("i"), array.array("i")
    for row_ids, row_labels in values:
        ids.extend(row_ids)
        labels.extend(row_labels)
    if sys.byteorder != "little":
        ids.byteswap()
        labels.byteswap()
    size = 4 * count * length
    header = json.dumps({
        "ids": {"dtype": "I32", "shape": [count, length], "data_offsets": [0, size]},
        "labels": {"dtype": "I32", "shape": [count, length], "data_offsets": [size, 2 * size]},
    }).encode()
    header += b" " * (-len(header) % 8)
    temporary = path + ".part"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        ids.tofile(file)
        labels.tofile(file)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--noise", type=int, default=32, help="size of the noise alphabet")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.length < 4 or args.noise < 2 or args.rows < 1:
        parser.error(f"need length >= 4, noise >= 2 and rows >= 1; got length {args.length}, noise {args.noise}, "
                     f"rows {args.rows}")
    write_safetensors(args.out, args.rows, args.length, rows(args.rows, args.length, args.noise, args.seed))


if __name__ == "__main__":
    main()
