# Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mixers by their plain definitions, in Python's floats (fp64), on lists
[seq][head][dim] of one sequence."""

import math


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def softmax_attention(q, k, v, scale, windows, sinks, log_n=None):
    outputs = []
    if not q:
        return outputs
    group = len(q[0]) // len(k[0])
    for t, heads in enumerate(q):
        factor = scale
        if log_n:
            factor *= max(1.0, math.log(t + 1) / math.log(log_n))
        row = []
        for h, query in enumerate(heads):
            seen = [
                j
                for j in range(t + 1)
                if not windows[h] or t - j < windows[h] or j < sinks[h]
            ]
            scores = [factor * dot(query, k[j][h // group]) for j in seen]
            largest = max(scores)
            weights = [math.exp(score - largest) for score in scores]
            row.append(
                [
                    dot(weights, [v[j][h // group][c] for j in seen]) / sum(weights)
                    for c in range(len(v[0][0]))
                ]
            )
        outputs.append(row)
    return outputs


def recurrence(q, k, v, g, beta, scale, state, delta):
    """`g` [seq][head][dim or 1] or None, `beta` [seq][head] or None, `state`
    [head][dim][value_dim]; gives the outputs and the final state."""
    state = [[list(row) for row in head] for head in state]
    outputs = []
    if not q:
        return outputs, state
    heads, group = len(q[0]), len(q[0]) // len(k[0])
    for t in range(len(q)):
        row = []
        for h in range(heads):
            s, key, value = state[h], k[t][h // group], list(v[t][h // group])
            for i in range(len(key)):
                decay = 0.0 if g is None else g[t][h][i if len(g[t][h]) > 1 else 0]
                s[i] = [math.exp(decay) * x for x in s[i]]
            if delta:
                rate = 1.0 if beta is None else beta[t][h]
                for c in range(len(value)):
                    read = dot([s[i][c] for i in range(len(key))], key)
                    value[c] = rate * (value[c] - read)
            for i in range(len(key)):
                s[i] = [x + key[i] * y for x, y in zip(s[i], value)]
            row.append(
                [
                    scale * dot([s[i][c] for i in range(len(key))], q[t][h])
                    for c in range(len(value))
                ]
            )
        outputs.append(row)
    return outputs, state


def zeros(heads, dim, value_dim):
    return [[[0.0] * value_dim for _ in range(dim)] for _ in range(heads)]


def sliding_recurrence(q, k, v, g, scale, window, stride):
    """The additive recurrence whose history at each position begins at a multiple
    of the stride."""
    heads, dim, value_dim = len(q[0]), len(q[0][0]), len(v[0][0])
    outputs = []
    for p in range(len(q)):
        begin = 0 if p < window else stride * ((p - window) // stride + 1)
        part = slice(begin, p + 1)
        rows, _ = recurrence(
            q[part],
            k[part],
            v[part],
            None if g is None else g[part],
            None,
            scale,
            zeros(heads, dim, value_dim),
            delta=False,
        )
        outputs.append(rows[-1])
    return outputs
