"""Diagnostics about files: models, artefacts, arrays."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Files"
ENTRIES = (
    Diagnostic(
        "file-not-found",
        2,
        what="the file does not exist",
        why="Nothing was read, so nothing was converted or run.",
        example="pulse convert encoder.onnx --pulse 4      # the file is called enc.onnx",
        remedy="Check the spelling and the folder; relative paths count from where the command runs.",
    ),
    Diagnostic(
        "file-unreadable",
        2,
        what="the system refused to read or write a file",
        why="The operating system gave an error for this path: no permission, a folder in place of a file, a full "
        "disk.",
        example="pulse inspect models/      # a folder",
        remedy="The message carries the system's own reason; give another path or mend its permissions.",
    ),
    Diagnostic(
        "not-onnx",
        2,
        what="the file is not a readable ONNX model",
        why="An ONNX file is a protobuf message. This one breaks off early, or holds something else altogether: often "
        "a download that stopped, a Git LFS pointer, or a checkpoint of the training framework.",
        example="pulse inspect enc.pt      # a PyTorch checkpoint, not an export",
        remedy="Export again, or fetch the whole file (`git lfs pull` for an LFS pointer).",
    ),
    Diagnostic(
        "invalid-model",
        2,
        what="the file is ONNX, but not a valid model",
        why="The ONNX checker refuses it: a value is used before it is made, an attribute has the wrong type, shapes "
        "contradict each other. A runtime might guess; a conversion that promises exactness must not.",
        example="a node reads `h0`, which no node, input or initializer provides",
        remedy="Run `onnx.checker.check_model(path, full_check=True)` and mend the export which made the file.",
    ),
    Diagnostic(
        "missing-external-data",
        2,
        what="the weights which the model keeps in another file are not there",
        why="Large models store their weights beside the .onnx file, under a name written in it. Without them the "
        "graph has no numbers.",
        example="enc.onnx was copied, enc.onnx.data was left behind",
        remedy="Put the data file back in the folder of the model, under the name it was exported with.",
    ),
    Diagnostic(
        "source-missing",
        2,
        what="the source model to compare with is not there",
        why="A pulsed file is compared with the very model that it was made from, which its manifest knows by name and "
        "checksum. It is looked for in the same folder, unless --source names it.",
        example="pulse check build/enc.pulse4.onnx      # enc.onnx lies elsewhere, or was exported anew",
        remedy="Name it, as in `pulse check build/enc.pulse4.onnx --source models/enc.onnx`.",
    ),
    Diagnostic(
        "unknown-op",
        2,
        what="the model uses an operator that is not part of ONNX",
        why="Its meaning is defined by one runtime or one library only, so its streaming form cannot be derived.",
        example="com.microsoft::FusedConv, left by an optimiser that saved its result",
        remedy="Give the model as it was exported, before any runtime optimised it; replace custom operators by ONNX "
        "ones.",
    ),
    Diagnostic(
        "opset-unsupported",
        2,
        what="the model's opset cannot be brought to one that pulse reads",
        why="Models are raised to opset 17 or above by the ONNX version converter. It starts at opset 7, some "
        "operators have no path, and opsets newer than the installed onnx package are unknown to it.",
        example="a model of opset 6, exported in 2017",
        remedy="Export again with opset 17 or above; for a newer opset, upgrade the onnx package.",
    ),
    Diagnostic(
        "output-unwritable",
        2,
        what="the output cannot be written there",
        why="The folder is missing, read-only or full, or the path is that of a device or a file being read. Results "
        "are written to a neighbouring file and moved into place, so that nothing half-written is left.",
        example="pulse convert enc.onnx --pulse 4 -o enc.onnx      # would overwrite the source",
        remedy="Give another path, or make the folder.",
    ),
    Diagnostic(
        "already-pulsed",
        2,
        what="the model to convert is a pulsed one",
        why="It is a streaming model already: it takes a few frames and its state, and no input is the whole signal "
        "any more.",
        example="pulse convert enc.pulse4.onnx --pulse 8",
        remedy="Convert the source model at the width wanted, or `--pulse dynamic` for a file that takes every width. "
        "The state of one width fits all others.",
    ),
    Diagnostic(
        "manifest-newer",
        2,
        what="the pulsed model was written by a newer version of pulse",
        why="Its manifest may say things this version does not understand, and reading it halfway could give wrong "
        "frames.",
        example="a manifest of version 2, read by a pulse that knows version 1",
        remedy="Upgrade pulse, or convert the source model again with this version.",
    ),
    Diagnostic(
        "manifest-missing",
        2,
        what="the file is not a pulsed model",
        why="A pulsed model carries a manifest (`pulse.manifest` in metadata_props) that names its state, rates and "
        "delays. Without it there is no knowing which inputs are state.",
        example='pulse.load("enc.onnx")      # the source model',
        remedy="Convert first: `pulse convert MODEL --pulse N`. A tool that rewrote the file may have dropped the "
        "metadata.",
    ),
    Diagnostic(
        "manifest-invalid",
        2,
        what="the manifest of the pulsed model cannot be used",
        why="It is not valid JSON, lacks a field, or names inputs, outputs or states which the graph does not have.",
        example="another tool renamed the state inputs of the graph",
        remedy="Convert the source model again; rename inputs and outputs before converting, not after.",
    ),
    Diagnostic(
        "bad-npz",
        2,
        what="the file of arrays cannot be used",
        why="`run` reads numeric arrays from a .npz whose keys are the inputs' names; a single-input model also takes "
        "a .npz with one array of any name, or a .npy. Pickled objects are not loaded, because they can run code.",
        example='np.savez("x.npz", noisy)      # for a model with two inputs',
        remedy="Save with names: `np.savez(path, feat_erb=x, feat_spec=y)`.",
    ),
)
