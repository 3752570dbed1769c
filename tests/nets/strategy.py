"""The Hypothesis strategy: draws nets that ONNX Runtime runs at every legal length."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from nets.base import LAYERS, Draw, Invalid, Layer, Value
from nets.builder import Builder
from nets.inputs import Fresh
from nets.join import Branch
from nets.net import Net, start

INPUTS = (
    ("NCS", (1, 4, -1)), ("NCS", (1, 6, -1)), ("NSF", (1, -1, 6)), ("NSF", (1, -1, 4)), ("NCSF", (1, 2, -1, 4)),
    ("NCSF", (1, 1, -1, 8)), ("NCFS", (1, 2, 3, -1)), ("NS", (1, -1)), ("SF", (-1, 4)),
)  # fmt: skip
SIZES = (2, 1, 3, 4, 5, 6)
MULTIPLES = (1, 1, 1, 1, 1, 2, 4, 6, 8, 12)


def draw_path(draw: Draw, b: Builder, x: Value, count: int, depth: int = 0) -> tuple[tuple[Layer, ...], Value]:
    """Up to `count` layers that fit one after another from `x`; those that do not fit are left out."""
    kinds = [k for k in LAYERS for _ in range(k.weight) if k is not Fresh and (depth < 2 or k is not Branch)]
    kinds.sort(key=lambda kind: -kind.weight)
    layers: list[Layer] = []
    for index in range(count):
        kind = draw(st.sampled_from(kinds))
        if depth and index == 0 and draw(st.integers(0, 5)) == 5:
            kind = Fresh
        mark = b.mark()
        try:
            step = kind.draw(draw, b, x, depth) if kind is Branch else kind.draw(draw, b, x)
            b.rewind(mark)  # a branch tried its paths
            y = b.run([step], x)
            b.min_length()
        except Invalid:
            b.rewind(mark)
            continue
        layers.append(step)
        x = y
    return tuple(layers), x


@st.composite
def nets(draw: Draw) -> Net:
    """Nets of up to six layers, a branch counted once."""
    layout, dims = draw(st.sampled_from(INPUTS))
    opset = draw(st.integers(11, 21))
    multiple = draw(st.sampled_from(MULTIPLES))
    chains = draw(st.booleans())
    seed = draw(st.integers(0, 99))
    b = Builder(opset, seed, multiple, chains)
    layers, _ = draw_path(draw, b, start(b, layout, dims), draw(st.sampled_from(SIZES)))
    net = Net(layers, layout, dims, opset, multiple, chains, seed)
    try:
        net.plan()
    except Invalid:
        assume(False)
    return net
