"""Diagnostics about where the stream axis goes, and of operators without a rule."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "The stream axis in the graph"
ENTRIES = (
    Diagnostic(
        "two-streaming-axes",
        1,
        what="a value would have two streaming axes",
        why="A stream grows along one axis. A value that grows along two has no frames to cut it into.",
        example="gram = x @ x.transpose(-1, -2)      # frames × frames",
        remedy="Keep one factor of fixed size: a window of frames, or features in place of frames.",
    ),
    Diagnostic(
        "merges-outer-axis",
        1,
        what="a reshape merges the stream axis into the axis before it",
        why="In the merged axis all frames of the first channel come before the first frame of the second, so the "
        "order in memory is no longer the order in time.",
        example="x.reshape(batch * channels * time, freq)      # channels > 1",
        remedy="Move the stream axis to the front first (transpose), or merge it with the axis behind it.",
    ),
    Diagnostic(
        "splits-stream-axis",
        1,
        what="a reshape splits the stream axis so that its outer part has a fixed size",
        why="Such a split cuts the signal into a fixed number of long blocks, whose size depends on the length.",
        example="x.reshape(batch, 4, time // 4, freq)      # four quarters of the signal",
        remedy="Split into blocks of a fixed number of frames: `x.reshape(batch, time // 4, 4, freq)`.",
    ),
    Diagnostic(
        "no-streaming-output",
        1,
        what="no output of the model is a stream",
        why="All outputs are computed once for the whole signal (a class, an embedding, a last state), so nothing "
        "would come out before the end.",
        example="a speaker-embedding network that pools over time",
        remedy="Convert a model with an output per frame; run the pooling outside.",
    ),
    Diagnostic(
        "no-rule",
        1,
        what="there is no streaming rule for this operator here",
        why="Its use along the stream axis is not known to be exact, and pulse does not guess.",
        example="an operator that no audio model known to us puts on the stream axis",
        remedy="If it can stream, a rule is one small file (see CONTRIBUTING.md); otherwise express it by other "
        "operators.",
    ),
)
