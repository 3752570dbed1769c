"""Diagnostics of operations that need the whole signal before they can give a first frame."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Operations over the whole signal"
ENTRIES = (
    Diagnostic(
        "reduce-over-stream",
        1,
        what="a mean, sum, maximum or norm over the stream axis needs the whole signal",
        why="Its value changes with every frame that arrives, and the full-signal model uses the final value from the "
        "first frame on.",
        example="x = x - x.mean(dim=time)      # utterance normalisation; InstanceNorm and GroupNorm over time too",
        remedy="Train with a running statistic (CumSum divided by the position) or normalise over other axes. If only "
        "a side output needs it, convert the others: `--outputs NAME`.",
    ),
    Diagnostic(
        "softmax-over-stream",
        1,
        what="a softmax over the stream axis needs the whole signal",
        why="Each frame's weight is divided by a sum over all frames, those to come included.",
        example="w = torch.softmax(score, dim=time); pooled = (w * x).sum(dim=time)      # attentive pooling",
        remedy="Take the softmax over another axis, or over a window of fixed width made by framing.",
    ),
    Diagnostic(
        "attention-unbounded",
        1,
        what="attention without a finite window lets every frame see every other",
        why="The scores form an S×S value: each new frame adds a row and a column, and early frames depend on late "
        "ones. Memory and delay would grow with the signal.",
        example="scores = q @ k.transpose(-1, -2)      # frames × frames",
        remedy="Attention over another axis (heads, bands) streams. Along time, replace it by a recurrence, a "
        "convolution or attention over frames gathered from a fixed window.",
    ),
    Diagnostic(
        "recurrence-reversed",
        1,
        what="a recurrence that runs backwards along the stream axis starts at the end of the signal",
        why="Its first output needs the last frame. A bidirectional layer contains such a recurrence.",
        example="nn.GRU(64, 64, bidirectional=True)      # along time",
        remedy="Train with a forward recurrence, with look-ahead by convolutions if it needs some. Both ways over "
        "another axis (frequency) is fine.",
    ),
    Diagnostic(
        "reversed-axis",
        1,
        what="the stream axis is reversed",
        why="The first frame that comes out would be the last one that goes in.",
        example="y = gru(x.flip(time)).flip(time)",
        remedy="Remove the backward branch from the model, or convert the outputs that do not need it: `--outputs "
        "NAME`.",
    ),
    Diagnostic(
        "sort-over-stream",
        1,
        what="sorting or searching along the stream axis needs the whole signal",
        why="TopK, ArgMax, ArgMin, Unique and the like compare all frames, and a later one can change the answer.",
        example="best_frame = score.argmax(dim=time)",
        remedy="Stream the scores and search outside the model. Over other axes these operators stream.",
    ),
    Diagnostic(
        "gather-over-stream",
        1,
        what="frames are picked by indices that no fixed window covers",
        why="Gather along the stream axis streams when the indices are a fixed pattern that moves with the signal "
        "(framing, unfold). Other indices may ask for any frame, past or future.",
        example="y = x[:, lengths - 1]      # or indices computed from the data",
        remedy="Gather outside the model, or use Slice, Conv or a framing whose indices grow with the position.",
    ),
    Diagnostic(
        "loop-over-stream",
        1,
        what="a loop runs over the stream axis in a form that cannot be cut into pulses",
        why="The loop's trip count or its body depends on the whole signal, or it walks backwards. What Scan does "
        "forwards, with a state of fixed size, streams.",
        example="for t in range(x.shape[1]): ...      # scripted, exported as Loop",
        remedy="Export recurrences as GRU, LSTM, RNN or Scan; vectorise loops that keep no state.",
    ),
    Diagnostic(
        "concat-over-stream",
        1,
        what="streams are joined end to end along the stream axis",
        why="The second would start when the first has ended: it had to be kept whole until then. Constant frames "
        "before or after one stream are fine, they are padding.",
        example="torch.cat([x, y], dim=time)      # both as long as the signal",
        remedy="Join on another axis (channels), or give the two signals to two streams one after the other.",
    ),
    Diagnostic(
        "dynamic-quantisation",
        1,
        what="dynamic quantisation takes its scale from the whole signal",
        why="DynamicQuantizeLinear looks for the smallest and largest value over all frames; a scale per pulse would "
        "give other numbers.",
        example="onnxruntime.quantization.quantize_dynamic(...)",
        remedy="Quantise statically, with calibrated scales (QDQ), or convert the float model.",
    ),
    Diagnostic(
        "stateful-random",
        1,
        what="the model draws random numbers",
        why="RandomNormal, RandomUniform, Multinomial, Bernoulli and dropout in training mode give other numbers on "
        "each run, so no stream can equal the full-signal run.",
        example="x = x + torch.randn_like(x)      # noise at inference",
        remedy="Export in evaluation mode, or make the noise an input of the model.",
    ),
    Diagnostic(
        "data-dependent-shape",
        1,
        what="a shape depends on the data",
        why="How many frames come out would be known only from their values (NonZero, Compress, Unique, masked "
        "selection), so there is no rate and no delay to speak of.",
        example="voiced = x[:, energy > 0.1]",
        remedy="Keep all frames and mark them by a mask output; select outside the model.",
    ),
)
