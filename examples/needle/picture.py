"""The picture of the needle experiment: one panel per variant, one line per seed."""

PANEL, GAP, LEFT, TOP, HEIGHT, BOTTOM = 140, 30, 46, 52, 190, 58
COLOURS = {"plain": "#b5423c", "log-n": "#c77d1e", "SWLA": "#3565a8", "both": "#2a7f3f"}
CONTROL_COLOUR = "#666666"


def polyline(points, style):
    return '<polyline points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + f'" fill="none" {style}/>'


def text(x, y, what, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{what}</text>'


def panel(left, name, multiples, seeds, control):
    """One variant: thin lines are seeds, the thick one is their mean, dashes are the control."""
    colour, step = COLOURS[name], PANEL / max(1, len(multiples) - 1)

    def place(values):
        return [(left + i * step, TOP + HEIGHT * (1 - value / 100)) for i, value in enumerate(values)]

    parts = [f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{HEIGHT}" fill="none" stroke="#bbb"/>',
             text(left + PANEL / 2, TOP - 8, name, f'text-anchor="middle" font-weight="bold" fill="{colour}"')]
    for percent in (25, 50, 75):
        parts.append(polyline([(left, y := TOP + HEIGHT * (1 - percent / 100)), (left + PANEL, y)], 'stroke="#e4e4e4"'))
    for i, multiple in enumerate(multiples):
        parts.append(text(left + i * step, TOP + HEIGHT + 16, f"{multiple}×", 'text-anchor="middle"'))
    for values in control:
        parts.append(polyline(place(values), f'stroke="{CONTROL_COLOUR}" stroke-dasharray="4 3"'))
    for values in seeds:
        parts.append(polyline(place(values), f'stroke="{colour}" stroke-opacity="0.45"'))
    mean = [sum(column) / len(column) for column in zip(*seeds)]
    parts.append(polyline(place(mean), f'stroke="{colour}" stroke-width="3"'))
    return parts


def draw(multiples, trained, seeds, control):
    """An SVG. `seeds` and `control` have per variant a list of rows, percent by multiple."""
    width = LEFT + len(seeds) * (PANEL + GAP)
    total = TOP + HEIGHT + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" '
             f'viewBox="0 0 {width} {total}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{total}" fill="white"/>',
             text(LEFT, 20, f"Needles found, percent. Trained at {trained} tokens, evaluated without training at "
                  f"{multiples[0]}× to {multiples[-1]}×.")]
    for percent in (0, 25, 50, 75, 100):
        parts.append(text(LEFT - 8, TOP + HEIGHT * (1 - percent / 100) + 4, percent, 'text-anchor="end"'))
    for i, (name, rows) in enumerate(seeds.items()):
        parts += panel(LEFT + i * (PANEL + GAP), name, multiples, rows, control.get(name, []))
    parts.append(text(LEFT, total - 14, "thin: one seed; thick: mean; dashed: control with ordinary gates",
                      'fill="#444"'))
    return "\n".join([*parts, "</svg>"]) + "\n"
