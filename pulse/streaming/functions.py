"""The streaming ops as model-local functions of domain `pulse`, with standard bodies.

ONNX Runtime inlines them at no run-time cost, a viewer shows them by name, our engine recognises them.
"""

from __future__ import annotations

import onnx
from onnx import parser

DOMAIN = "pulse"

# The last `frames` frames stay for the next pulse.
_HISTORY = """
History <axis: int, frames: int> (x, hist) => (y, hist_out) {
  y = Concat <axis: int = @axis> (hist, x)
  one = Constant <value_ints = [1]> ()
  frames = Constant <value_int: int = @frames> ()
  back = Neg (frames)
  first = Reshape (back, one)
  last = Constant <value_ints = [9223372036854775807]> ()
  axis = Constant <value_int: int = @axis> ()
  axes = Reshape (axis, one)
  hist_out = Slice (y, first, last, axes)
}"""

_DELAY = """
Delay <axis: int, frames: int> (x, hist) => (y, hist_out) {
  all = Concat <axis: int = @axis> (hist, x)
  one = Constant <value_ints = [1]> ()
  zero = Constant <value_ints = [0]> ()
  frames = Constant <value_int: int = @frames> ()
  back = Neg (frames)
  cut = Reshape (back, one)
  last = Constant <value_ints = [9223372036854775807]> ()
  axis = Constant <value_int: int = @axis> ()
  axes = Reshape (axis, one)
  y = Slice (all, zero, cut, axes)
  hist_out = Slice (all, cut, last, axes)
}"""

# `i` numbers the frames. It counts from 0 before it is shifted: its size is then known where that of the pulse is.
_COUNT = """
  scaled = Mul (position, num)
  emitted = Div (scaled, den)
  first = Sub (emitted, delay)
  zero = Constant <value_int = 0> ()
  step = Constant <value_int = 1> ()
  steps = Range (zero, n, step)
  i = Add (steps, first)
"""
_INDEX = f"""
  shape = Shape (x)
  axis = Constant <value_int: int = @axis> ()
  n = Gather <axis = 0> (shape, axis)
  num = Constant <value_int: int = @num> ()
  den = Constant <value_int: int = @den> ()
  delay = Constant <value_int: int = @delay> ()
{_COUNT}"""

# The numbers of the frames that a stream has in this pulse; `x`, a source input, has `per` frames per source frame.
_FRAMES = f"""
Frames <axis: int, num: int, den: int, delay: int, per: int> (x, position) => (i) {{
  shape = Shape (x)
  axis = Constant <value_int: int = @axis> ()
  taken = Gather <axis = 0> (shape, axis)
  num = Constant <value_int: int = @num> ()
  den = Constant <value_int: int = @den> ()
  per = Constant <value_int: int = @per> ()
  delay = Constant <value_int: int = @delay> ()
  source = Div (taken, per)
  grown = Mul (source, num)
  n = Div (grown, den)
{_COUNT}}}"""

# `valid` keeps what is signal: from frame 0 on, and before the length where that is known (not negative).
_START = """
  early = Less (i, zero)
  valid = Not (early)
"""
_END = """
  open = Less (length, zero)
  before = Less (i, length)
  valid = Or (open, before)
"""
_BOTH = """
  early = Less (i, zero)
  started = Not (early)
  open = Less (length, zero)
  before = Less (i, length)
  unended = Or (open, before)
  valid = And (started, unended)
"""
_FILL = """
  dims = Constant <value_ints: ints = @shape> ()
  keep = Reshape (valid, dims)
  fill = Constant <value: tensor = @value> ()
  y = Where (keep, x, fill)
"""
_MASK_ATTRIBUTES = "axis: int, num: int, den: int, delay: int, shape: ints, value: tensor"


def _mask(name: str, inputs: str, condition: str) -> str:
    return f"{name} <{_MASK_ATTRIBUTES}> ({inputs}) => (y) {{{_INDEX}{condition}{_FILL}}}"


# One frame spread over as many frames as the pulse has: `onehot` is 1 at the stream axis of the result.
_SPREAD = """
Spread <axis: int, num: int, den: int, onehot: ints> (x, frame) => (y) {
  shape = Shape (x)
  axis = Constant <value_int: int = @axis> ()
  n = Gather <axis = 0> (shape, axis)
  num = Constant <value_int: int = @num> ()
  den = Constant <value_int: int = @den> ()
  scaled = Mul (n, num)
  frames = Div (scaled, den)
  onehot = Constant <value_ints: ints = @onehot> ()
  grown = Mul (onehot, frames)
  one = Constant <value_int = 1> ()
  dims = Max (grown, one)
  y = Expand (frame, dims)
}"""

# Adds the tail of what came before to the head, and keeps the new tail.
_OVERLAP_ADD = """
OverlapAdd <axis: int, frames: int> (full, tail) => (y, tail_out) {
  one = Constant <value_ints = [1]> ()
  zero = Constant <value_ints = [0]> ()
  frames = Constant <value_int: int = @frames> ()
  count = Reshape (frames, one)
  back = Neg (count)
  end = Constant <value_ints = [9223372036854775807]> ()
  axis = Constant <value_int: int = @axis> ()
  axes = Reshape (axis, one)
  head = Slice (full, zero, count, axes)
  sum = Add (head, tail)
  rest = Slice (full, count, end, axes)
  all = Concat <axis: int = @axis> (sum, rest)
  y = Slice (all, zero, back, axes)
  tail_out = Slice (all, back, end, axes)
}"""

# Frames before the signal must not touch the state. A recurrence cannot run on no frames (ONNX Runtime aborts), so at
# least one frame is always run and its state thrown away if it was early; sequence_lens does not work for this (ONNX
# Runtime returns zeros for length 0, onnx.reference ignores it). The stream axis is 0.
_SKIP = """
  shape = Shape (x)
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  n = Gather <axis = 0> (shape, zero)
  num = Constant <value_int: int = @num> ()
  den = Constant <value_int: int = @den> ()
  delay = Constant <value_int: int = @delay> ()
  scaled = Mul (position, num)
  emitted = Div (scaled, den)
  left = Sub (delay, emitted)
  skip = Max (left, zero)
  most = Sub (n, one)
  k = Min (skip, most)
  none = Less (most, skip)
  steps = Range (zero, n, one)
"""
# Runs all frames, with the `k` early ones left out and the last repeated in their stead, and takes the state from
# before the repetitions, where it is the output: no size depends on `k`, which tract asks for.
_AHEAD = f"""{_SKIP}
  later = Add (steps, k)
  source = Min (later, most)
  run = Gather <axis = 0> (x, source)
"""
_LAST = """
  last = Sub (most, k)
  h_run = Gather <axis = 0> (y_run, last)
  h_out = Where (none, h, h_run)
"""
_BACK = """
  earlier = Sub (steps, k)
  target = Max (earlier, zero)
  y = Gather <axis = 0> (y_run, target)
"""
_CELL = "hidden_size, activations, activation_alpha, activation_beta, clip"
_PASS = (
    "hidden_size: int = @hidden_size, activations: strings = @activations, "
    "activation_alpha: floats = @activation_alpha, activation_beta: floats = @activation_beta, clip: float = @clip"
)
_GRU = f"""
GRU <num: int, den: int, delay: int, linear_before_reset, {_CELL}> (x, w, r, b, h, position) => (y, h_out) {{
{_AHEAD}
  y_run = GRU <linear_before_reset: int = @linear_before_reset, {_PASS}> (run, w, r, b, , h)
{_BACK}{_LAST}
}}"""
_RNN = f"""
RNN <num: int, den: int, delay: int, {_CELL}> (x, w, r, b, h, position) => (y, h_out) {{
{_AHEAD}
  y_run = RNN <{_PASS}> (run, w, r, b, , h)
{_BACK}{_LAST}
}}"""
# The cell state is known after the last frame only, so here nothing may come after it.
_LSTM = f"""
LSTM <num: int, den: int, delay: int, input_forget, {_CELL}> (x, w, r, b, h, c, p, position) => (y, h_out, c_out) {{
{_SKIP}
  axes = Constant <value_ints = [0]> ()
  from = Unsqueeze (k, axes)
  end = Constant <value_ints = [9223372036854775807]> ()
  run = Slice (x, from, end, axes)
  y_run, h_run, c_run = LSTM <input_forget: int = @input_forget, {_PASS}> (run, w, r, b, , h, c, p)
{_BACK}
  h_out = Where (none, h, h_run)
  c_out = Where (none, c, c_run)
}}"""

TEXTS: dict[str, str] = {
    "History": _HISTORY,
    "Delay": _DELAY,
    "Frames": _FRAMES,
    "MaskStart": _mask("MaskStart", "x, position", _START),
    "MaskEnd": _mask("MaskEnd", "x, position, length", _END),
    "Mask": _mask("Mask", "x, position, length", _BOTH),
    "Spread": _SPREAD,
    "OverlapAdd": _OVERLAP_ADD,
    "GRU": _GRU,
    "RNN": _RNN,
    "LSTM": _LSTM,
}


def build(name: str, opset: int) -> onnx.FunctionProto:
    """The function at an opset, every body node named (ONNX Runtime 1.18 to 1.20 clash on unnamed ones)."""
    header = f'<domain: "{DOMAIN}", opset_import: ["" : {opset}]>\n'
    function = parser.parse_function(header + TEXTS[name].strip())
    for i, node in enumerate(function.node):
        node.name = f"{name}_{i}_{node.op_type}"
    return function
