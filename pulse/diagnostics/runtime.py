"""Diagnostics of a running stream: arrays, engines, order of calls."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Running a stream"
ENTRIES = (
    Diagnostic(
        "wrong-shape",
        2,
        what="an array has the wrong shape",
        why="All axes but the stream axis are fixed by the model; along the stream axis any number of frames is "
        "welcome.",
        example='stream.push({"x": np.zeros((32, 4), np.float32)})      # the model takes (1, 1, frames, 32)',
        remedy="Give the shape which the message asks for; `model.inputs` lists them.",
    ),
    Diagnostic(
        "wrong-dtype",
        2,
        what="an array has the wrong element type",
        why="Converting without asking would hide mistakes and cost time in every pulse.",
        example='stream.push({"x": np.zeros((1, 1, 4, 32))})      # numpy makes float64',
        remedy="Convert once, outside the loop: `x.astype(np.float32)`.",
    ),
    Diagnostic(
        "wrong-name",
        2,
        what="the model has no input of that name",
        why="Arrays are given by input name; an unknown name is most likely a misspelt one.",
        example='stream.push({"feats": x})      # the input is called feat_erb',
        remedy="`model.inputs` lists the names. A model with one input also takes the bare array.",
    ),
    Diagnostic(
        "missing-input",
        2,
        what="an input was not given",
        why="All streaming inputs move together, and inputs that do not stream (a speaker vector, an initial state) "
        "must be there from the first push on.",
        example='stream.push({"feat_erb": x})      # feat_spec is missing',
        remedy="Give every input that the message names.",
    ),
    Diagnostic(
        "frames-mismatch",
        2,
        what="the inputs disagree about the number of frames",
        why="All streaming inputs cover the same stretch of signal, each at its own rate.",
        example='stream.push({"feat_erb": four_frames, "feat_spec": three_frames})',
        remedy="Cut the arrays at the same point in time.",
    ),
    Diagnostic(
        "use-after-flush",
        2,
        what="the stream has been flushed",
        why="`flush` says that the signal has ended. Frames after the end would be treated as following padding that "
        "was already processed.",
        example="stream.flush(); stream.push(x)",
        remedy="Call `stream.reset()` to start a new signal, or `restore` an earlier snapshot.",
    ),
    Diagnostic(
        "length-illegal",
        2,
        what="the model cannot take a signal of this length",
        why="The full-signal model itself fails or is undefined for it: too short for a convolution without padding, "
        "or not the multiple that was promised at conversion. So there is no right answer to stream.",
        example="2 frames, then flush, for a model with a valid convolution of width 5",
        remedy="Pad the signal before pushing it, as one would for the full-signal model.",
    ),
    Diagnostic(
        "engine-missing",
        2,
        what="the engine is not installed",
        why="ONNX Runtime is an optional extra; the native engine is built with the package.",
        example='model.stream(engine="onnxruntime")      # in an environment without it',
        remedy="`pip install onnxruntime`, or take another engine: `--engine reference` is always there.",
    ),
    Diagnostic(
        "engine-unsupported",
        2,
        what="the engine cannot run an operator of this model",
        why="The native engine has hand-written forms of the operators that streaming audio models use; it names the "
        "first one it lacks. ONNX Runtime may lack an operator for a data type.",
        example="a ScatterND on the stream's features, with `--engine native`",
        remedy="`--engine onnxruntime` runs the same file; without `--engine` this happens by itself.",
    ),
    Diagnostic(
        "stream-busy",
        2,
        what="two threads run one stream at the same time",
        why="A stream holds the state of one signal, and its pulses follow one another. Streams of one model share "
        "what does not change, so that one more costs little.",
        example="Thread(target=stream.push, args=(left,)); Thread(target=stream.push, args=(right,))",
        remedy="Make a stream for every thread: `model.stream()`.",
    ),
    Diagnostic(
        "snapshot-mismatch",
        2,
        what="the snapshot belongs to another model",
        why="A snapshot holds the state of a stream: histories, recurrent states, positions. Names, shapes and types "
        "must be those of this model.",
        example="stream_of_b.restore(stream_of_a.snapshot())",
        remedy="Restore it into a stream of the model it was taken from; any pulse width of that model will do.",
    ),
)
