#!/usr/bin/env python3
"""Draws the loss curve of a training log as an SVG picture.

    scripts/loss-curve.py RUN/log.jsonl RUN/loss.svg

The log is one JSON object a line. Lines with "bytes" and "bits_per_byte" are
training steps; lines with "bytes" and "valid_bits_per_byte" are validations.
"""

import json
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 60, 50, 20, 20


def read(path):
    train, valid = [], []
    with open(path) as log:
        for line in log:
            row = json.loads(line)
            if "bits_per_byte" in row:
                train.append((row["bytes"], row["bits_per_byte"]))
            if "valid_bits_per_byte" in row:
                valid.append((row["bytes"], row["valid_bits_per_byte"]))
    return train, valid


def smoothed(points, width):
    """Mean of each run of `width` steps: single steps are too noisy to read."""
    return [(points[min(i + width, len(points)) - 1][0],
             sum(y for _, y in points[i:i + width]) / len(points[i:i + width]))
            for i in range(0, len(points), width)]


def draw(train, valid):
    train = smoothed(train, max(1, len(train) // 300))
    points = train + valid
    x_max = max(x for x, _ in points)
    low = min(y for _, y in points)
    high = min(max(y for _, y in points), low + 4)  # the first steps would flatten the rest
    low, high = low - 0.05, high + 0.05

    def x_of(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / x_max

    def y_of(y):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(y, high)) / (high - low)

    def line(data, colour):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in data)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(6):
        y = low + (high - low) * i / 5
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}" '
                   'stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:.2f}</text>')
        x = x_max * i / 5
        out.append(f'<text x="{x_of(x):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{x / 1e6:.1f}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
               'million bytes trained on</text>')
    out.append(f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" '
               f'transform="rotate(-90 14 {HEIGHT / 2})">bits per byte</text>')
    out.append(line(train, "#4477aa"))
    if valid:
        out.append(line(valid, "#cc6677"))
        out += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="#cc6677"/>'
                for x, y in valid]
    out.append(f'<text x="{WIDTH - RIGHT - 130}" y="{TOP + 14}" fill="#4477aa">training</text>')
    out.append(f'<text x="{WIDTH - RIGHT - 60}" y="{TOP + 14}" fill="#cc6677">validation</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train, valid = read(sys.argv[1])
    if not train:
        sys.exit(f"error: {sys.argv[1]} has no training step yet")
    with open(sys.argv[2], "w") as picture:
        picture.write(draw(train, valid))


if __name__ == "__main__":
    main()
