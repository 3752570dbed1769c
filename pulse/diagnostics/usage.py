"""Diagnostics about what was asked for: options, axes, widths."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "What was asked for"
ENTRIES = (
    Diagnostic(
        "usage",
        2,
        what="the request cannot be understood",
        why="An option or an argument is missing, unknown, or of the wrong kind.",
        example="pulse convert enc.onnx --pulse four",
        remedy="`pulse COMMAND --help` lists what the command takes.",
    ),
    Diagnostic(
        "unknown-code",
        2,
        what="there is no diagnostic of that name",
        why="`pulse explain` takes the code of a diagnostic, as error messages show it.",
        example="pulse explain softmax      # the code is softmax-over-stream",
        remedy="`pulse explain --all` lists every code.",
    ),
    Diagnostic(
        "no-stream-axis",
        2,
        what="no input has an axis whose length is left open",
        why="The stream axis is the one the model declares by a symbol (`S`, `T`, `time`, ...). Here all lengths are "
        "fixed, or only batch axes are open, so there is nothing to feed a few frames at a time.",
        example="an export without `dynamic_axes`: x is [1, 1, 100, 32]",
        remedy="Name the axis: `--input x=1,1,S,32`; or export with a dynamic time axis. A model that was made to take "
        "one frame per call, with caches as inputs, streams already: convert its full-signal form.",
    ),
    Diagnostic(
        "ambiguous-stream-axis",
        2,
        what="several axes could be the stream axis",
        why="More than one symbol is open, and guessing could stream over frequency in place of time.",
        example="x is [batch, channels, time, freq], with time and freq both open",
        remedy="Name the one that streams and fix the others: `--input x=1,2,S,257`.",
    ),
    Diagnostic(
        "two-stream-axes",
        2,
        what="one input has the stream symbol on two axes",
        why="A frame is one index along one axis. An input such as an S×S mask grows in both directions with every "
        "frame.",
        example="--input mask=S,S",
        remedy="Give such a mask a fixed size, or build it inside the model from a window of fixed width.",
    ),
    Diagnostic(
        "bad-input-spec",
        2,
        what="an input's shape cannot be understood",
        why="The form is NAME=D1,D2,...: each D a whole number above 0, or an expression in one symbol for the stream "
        "axis.",
        example="--input x=1x1xSx32",
        remedy="Write it with commas: `--input x=1,1,S,32`.",
    ),
    Diagnostic(
        "unknown-input",
        2,
        what="the model has no input of that name",
        why="A shape was given for an input which the graph does not have; it would have been ignored without a word.",
        example="--input feats=1,1,S,32      # the input is called feat_erb",
        remedy="`pulse inspect MODEL` lists the inputs.",
    ),
    Diagnostic(
        "unknown-output",
        2,
        what="the model has no output of that name",
        why="`--outputs` keeps only what the named outputs need, so each must exist.",
        example="--outputs mask      # the output is called m",
        remedy="`pulse inspect MODEL` lists the outputs.",
    ),
    Diagnostic(
        "contradicting-shape",
        2,
        what="the shape given for an input contradicts the graph",
        why="Weights and reshapes in the graph fix some dimensions. With this shape a node would get something it "
        "cannot take.",
        example="--input x=1,1,S,40      # the first Linear layer takes 32 features",
        remedy="Give the shape the model was built for; only the stream axis and batch axes are free.",
    ),
    Diagnostic(
        "illegal-pulse",
        2,
        what="this pulse width is not legal for the model",
        why="Every tensor must get a whole number of frames per pulse. A model that halves the rate can only be "
        "called with an even number of frames: its granularity is 2.",
        example="--pulse 3      # for a model with a stride of 2 on the stream axis",
        remedy="Take a multiple of the granularity, which the message names; `push` still accepts any number of "
        "frames.",
    ),
    Diagnostic(
        "mismatch",
        1,
        what="the stream does not give what the full-signal model gives",
        why="`check` runs both on the same random signal and compares every frame. A difference means that the "
        "conversion, or the engine that ran it, is wrong: the file is not to be trusted, and `convert` does not "
        "write it.",
        example="pulse check enc.pulse4.onnx      # after its weights were edited",
        remedy="Convert again from the source. If it persists, report it with the node that the message names.",
    ),
)
