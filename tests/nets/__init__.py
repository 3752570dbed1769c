"""Random streaming nets: problems as dataclasses whose repr can be pasted as a pinned test.

`Net(...)` is a problem, `net.build()` its ONNX model, `nets()` a Hypothesis strategy that draws problems which ONNX
Runtime accepts. One small file per family of layers; a new layer is one dataclass with `@layer`.
"""

from nets.bands import BandAttention, BandConv, Outer
from nets.conv import Conv, Conv2d, ConvT
from nets.cut import ConcatTime, Pad, Slice
from nets.elementwise import Act, Affine, Glu, Misc, Prelu
from nets.frames import Frames, Spectrum, Transform
from nets.inputs import Fresh, Side, Tap
from nets.join import Branch, Gate
from nets.layout import Layout
from nets.linear import Einsum, Gemm, MatMul
from nets.net import Net, Plan
from nets.norm import Best, Norm, Reduce, Softmax
from nets.plain import plain
from nets.pool import Pool
from nets.position import Position, ShapeMade
from nets.quant import IntMatMul, QConv, QdqConv, Quant
from nets.recurrent import Across, CumSum, Rnn, Scan
from nets.reshape import Flatten, Merge, Shuffle, Split, Tile
from nets.resize import Resize
from nets.select import Gather, Lookup, Pick
from nets.strategy import nets
from nets.text import from_text

__all__ = [
    "Across",
    "Act",
    "Affine",
    "BandAttention",
    "BandConv",
    "Best",
    "Branch",
    "ConcatTime",
    "Conv",
    "Conv2d",
    "ConvT",
    "CumSum",
    "Einsum",
    "Flatten",
    "Frames",
    "Fresh",
    "Gate",
    "Gather",
    "Gemm",
    "Glu",
    "IntMatMul",
    "Layout",
    "Lookup",
    "MatMul",
    "Merge",
    "Misc",
    "Net",
    "Norm",
    "Outer",
    "Pad",
    "Pick",
    "Plan",
    "Pool",
    "Position",
    "Prelu",
    "QConv",
    "QdqConv",
    "Quant",
    "Reduce",
    "Resize",
    "Rnn",
    "Scan",
    "ShapeMade",
    "Shuffle",
    "Side",
    "Slice",
    "Softmax",
    "Spectrum",
    "Split",
    "Tap",
    "Tile",
    "Transform",
    "from_text",
    "nets",
    "plain",
]
