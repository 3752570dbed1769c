"""Diagnostics about the length, the start and the end of the signal."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Lengths, starts and ends"
ENTRIES = (
    Diagnostic(
        "depends-on-length",
        1,
        what="a value depends on the length of the signal",
        why="While the signal is arriving nobody knows how long it will be.",
        example="position = torch.arange(T) / T      # or a sum divided by T",
        remedy="Use positions that count from the start, or a fixed scale in place of the length.",
    ),
    Diagnostic(
        "from-the-end",
        1,
        what="frames are counted from the end of the signal",
        why="Which frames these are is known only when the signal has ended, and the number of frames between start "
        "and end grows without bound.",
        example="last = x[:, -5:]      # or the middle of the signal",
        remedy="Stream all frames and pick outside the model; convert the other outputs with `--outputs NAME`. "
        "Dropping a fixed number of frames at the end (`x[:, :-5]`) streams.",
    ),
    Diagnostic(
        "first-frames-only",
        1,
        what="only a fixed number of first frames is used",
        why="After these frames the value stays as it is: it is no stream, though later frames depend on it.",
        example="noise_floor = x[:, :10]",
        remedy="Compute it from a separate input with a fixed number of frames, or by a recurrence.",
    ),
    Diagnostic(
        "last-state",
        1,
        what="the model uses the last state of a recurrence",
        why="The state after the last frame is known only at the end, and here other values are computed from it. As "
        "a mere output beside a stream it would be dropped with a warning.",
        example="_, h = gru(x); y = linear(h)      # sequence classification",
        remedy="Classify every frame (`linear(output)` in place of `linear(h)`) and take the last frame outside the "
        "model.",
    ),
    Diagnostic(
        "sequence-lens",
        1,
        what="a recurrence is given the lengths of its sequences",
        why="sequence_lens tells the operator where each signal ends, from the first frame on; in a stream that is "
        "unknown.",
        example="pack_padded_sequence(x, lengths)",
        remedy="Export without packing; the end of a stream is told by `flush`.",
    ),
    Diagnostic(
        "same-padding-stride",
        1,
        what="SAME padding with a stride pads by an amount that depends on the length",
        why="With auto_pad=SAME_UPPER or SAME_LOWER the padding before the first frame depends on the remainder of "
        "the length by the stride; so the first frame would depend on when the signal ends.",
        example="tf.keras.layers.Conv1D(32, 3, strides=2, padding='same')",
        remedy="Promise the remainder with `--length-multiple-of N`, N a multiple of the strides; or export with "
        "explicit padding.",
    ),
    Diagnostic(
        "length-mismatch",
        1,
        what="two streams that are joined never have the same length",
        why="Both follow the same signal, but one is longer for every length, so the full-signal model fails on the "
        "join as well, or broadcasts only for one special length.",
        example="y = x[:, 2:] + x",
        remedy="Pad or cut one of them so that both have the same length.",
    ),
    Diagnostic(
        "rate-mismatch",
        1,
        what="two streams that are joined run at different rates",
        why="One gives more frames per source frame than the other, so their lengths part further with every frame.",
        example="y = conv_stride_2(x) + x",
        remedy="Bring both to one rate: stride or pool the faster one, up-sample the slower.",
    ),
    Diagnostic(
        "state-too-large",
        1,
        what="the stream would have to keep more than any stream should",
        why="Delays, padding and windows of more than 4 million frames, strides and pulses of more than 262,144, or a "
        "single state of more than 134 million numbers are nearly always a wrong number in the file.",
        example="nn.Conv1d(1, 1, 3, dilation=2_000_000_000)",
        remedy="Look at the sizes of the node that is named. A model that does need such a context can still run on "
        "whole signals.",
    ),
    Diagnostic(
        "pad-mode",
        1,
        what="this padding takes frames from the far end of the signal",
        why="Padding by wrapping puts the last frames before the first. Reflection and edge padding need frames near "
        "the edge only; they stream where these come within a fixed delay.",
        example="F.pad(x, (8, 8), mode='circular')",
        remedy="Train with zero padding, or with reflection where the padded width is fixed.",
    ),
    Diagnostic(
        "resize-mode",
        1,
        what="this way of resizing along the stream axis cannot be cut into pulses",
        why="Target sizes in place of scales, scales that are no whole numbers, or coordinates aligned to the corners "
        "make the position of each frame depend on the length.",
        example="F.interpolate(x, size=100)      # or align_corners=True",
        remedy="Resize by a whole factor: nearest with asymmetric coordinates, or a ConvTranspose.",
    ),
)
