"""Diagnostics of data sets, tables and hints."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Data sets, tables and hints"
ENTRIES = (
    Diagnostic(
        "dataset-corrupt",
        2,
        what="the data set of timings cannot be read",
        why="Every line of a data set ends with a checksum. A line that does not fit it was changed after it was "
        "written, or is none at all. A last line that breaks off is what an interrupted run leaves, and no fault.",
        example="pulse costmodel fit notes.txt",
        remedy="Delete the line and gather again: only what is missing is timed.",
    ),
    Diagnostic(
        "dataset-foreign",
        2,
        what="the data set does not belong here",
        why="Times of two processors, of two lists of kernels or taken with other settings cannot stand in one data "
        "set: their differences would be taken for differences between kernels.",
        example="pulse costmodel gather -o board.txt      # a data set that was begun on another CPU",
        remedy="Gather into a new file, or give the options that the data set was begun with.",
    ),
    Diagnostic(
        "dataset-too-small",
        2,
        what="the data set has too few samples",
        why="A fit needs products of every kind to learn from and some held out to be judged by; with fewer it would "
        "learn noise.",
        example="pulse costmodel fit data.txt      # gather was stopped after a few seconds",
        remedy="Let `pulse costmodel gather` finish; it goes on where it was. Or give a larger --sweep.",
    ),
    Diagnostic(
        "kernels-gone",
        2,
        what="the data set or table names kernels that no longer exist",
        why="Kernels come and go with versions of pulse. Times of those that are gone teach nothing about those that "
        "are there, and picking one of them is impossible.",
        example="a data set of pulse 0.1, fitted with a pulse that dropped v4_mmm_f32_32x8",
        remedy="Gather and fit again with this version of pulse.",
    ),
    Diagnostic(
        "table-invalid",
        2,
        what="the table cannot be used",
        why="It is not JSON, lacks a part, or has another version: what its numbers are multiplied with may differ.",
        example="pulse costmodel show data.txt      # a data set, not a table",
        remedy="Fit it again from its data set: `pulse costmodel fit DATASET`.",
    ),
    Diagnostic(
        "hints-invalid",
        2,
        what="the file of hints cannot be used",
        why="It is not JSON, lacks a part, or has another version.",
        example="pulse profile enc.onnx --hints enc.onnx",
        remedy="Make hints again with `pulse tune MODEL`, or do without: `--hints none`.",
    ),
    Diagnostic(
        "constraints-invalid",
        2,
        what="the file of sanity constraints cannot be understood",
        why="It is a list of objects, each with a product and the kernels that may or may not be picked for it.",
        example='[{"product": "32x9x96", "one_of": "nl"}]',
        remedy='Write, for example, [{"product": "32 9 96 channel none l2", "one_of": ["*_nl_*"]}].',
    ),
    Diagnostic(
        "constraints-unsatisfied",
        2,
        what="no candidate fit keeps all sanity constraints",
        why="Each constraint says what is known to be good for one product. When every fit breaks one, either the "
        "samples mislead or the constraint does.",
        example='{"product": "1 256 1 frame none l2", "one_of": ["*_64x1"]}',
        remedy="Time the products named with `pulse kernels time M K N`; mend the constraint, or gather more samples.",
    ),
    Diagnostic(
        "output-exists",
        2,
        what="there is a file already where the result would go",
        why="Tables, hints and data sets take time to make and are compared with one another, so none is written over "
        "by accident.",
        example="pulse costmodel fit data.txt -o v4.json      # a second time",
        remedy="--force writes over it; -o takes another path.",
    ),
    Diagnostic(
        "core-unavailable",
        2,
        what="the core to time on cannot be had",
        why="Timing holds on to one core. The one asked for does not exist, or this process may not use it (taskset, "
        "cgroups, containers).",
        example="pulse costmodel gather --core 8      # on a machine with four",
        remedy="Name another core, or none: the last one that is allowed is taken.",
    ),
    Diagnostic(
        "out-of-memory",
        2,
        what="there is not enough memory to time with",
        why="Weights from memory are timed by walking through an area twice as large as the largest cache.",
        example="pulse costmodel gather on a board with 64 MB",
        remedy="Stop other programs, or add swap: the area is only read while it is walked through.",
    ),
)
