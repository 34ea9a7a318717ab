"""Specs of the published sizes from one template: what the tables of whole models measure.

Sizes are of the Llama kind (RMS norm, SwiGLU, untied head, heads of 128, as many
key heads as query heads), as examples/specs has them. 3B is a shape of our own,
as none is published.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Size:
    name: str
    width: int
    layers: int
    heads: int
    inner: int
    vocab: int = 128256
    head_dim: int = 128
    window: int = 128


SIZES = {
    "376M": Size("376M", 1024, 8, 8, 3584),
    "776M": Size("776M", 1536, 12, 12, 5376),
    "1B": Size("1B", 2048, 16, 16, 7168),
    "3B": Size("3B", 3072, 20, 24, 8192),
    # For a test on a processor.
    "small": Size("small", 64, 4, 4, 96, vocab=256, head_dim=16, window=16),
}

#: Mixers beside full attention; RoPE alone is the full attention of the ratios.
MIXERS = ("rope", "rope_nope", "swa", "gla", "gdn")
MIXES = ("layer", "head")


def biased(size, mixer, heads, headwise):
    """The mixer that stands three to one beside full attention, on `heads` heads."""
    dim, rotary = size.head_dim, "position(rope, base = 10000)"
    if mixer == "rope_nope":
        return f"hybrid.softmax heads({heads}) head_dim({dim}) {rotary}"
    if mixer == "swa":
        return f"hybrid.softmax heads({heads}) head_dim({dim}) {rotary} window({size.window})"
    if mixer == "gdn":
        return f"hybrid.gdn heads({heads}) head_dim({dim})"
    # Keys of half the width, as published; per layer by half the heads, per head by half a head.
    if headwise:
        return f"hybrid.gla heads({heads}) head_dim({dim // 2}) value_dim({dim})"
    return f"hybrid.gla heads({heads // 2}) head_dim({dim}) value_dim({2 * dim})"


def layer_kinds(size, mixer, mix):
    """Per layer, the kinds of its head groups with their heads: what a peer builds."""
    if mixer == "rope":
        return [[("rope", size.heads)]] * size.layers
    kind = "rope" if mixer == "rope_nope" else mixer
    if mix == "head":
        return [[(kind, 3 * size.heads // 4), ("nope", size.heads // 4)]] * size.layers
    return [[("nope" if layer % 4 == 3 else kind, size.heads)] for layer in range(size.layers)]


def write_spec(size, mixer, mix, trained=4096, attributes=""):
    """The spec of a model, and its name. `mix` says nothing for rope."""
    full = f"hybrid.softmax heads({{}}) head_dim({size.head_dim}) position(nope)"
    if mixer == "rope":
        name = f"rope_{size.name}"
        body = f"  hybrid.softmax heads({size.heads}) head_dim({size.head_dim}) position(rope, base = 10000)\n"
    elif mix == "layer":
        name = f"{mixer}_layer_{size.name}"
        body = ("  hybrid.mix ratio(3 : 1) {\n"
                f"    {biased(size, mixer, size.heads, False)}\n"
                f"    {full.format(size.heads)}\n  }}\n")
    else:
        name = f"{mixer}_head_{size.name}"
        body = (f"  hybrid.heads total({size.heads}) {{\n"
                f"    {biased(size, mixer, 3 * size.heads // 4, True)}\n"
                f"    {full.format(size.heads // 4)}\n  }}\n")
    head = f"hybrid.model @{name} vocab({size.vocab}) width({size.width}) layers({size.layers}) trained({trained})"
    return name, f"{head}{attributes} {{\n{body}  hybrid.mlp swiglu({size.inner})\n}}\n"
