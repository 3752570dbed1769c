"""What an engine says when the graph it was given does not load or run."""

from __future__ import annotations

from pulse.errors import PulseError


def unsupported(engine: str, required: str, error: Exception) -> PulseError:
    """The diagnostic for whatever a runtime raised: runtimes have exceptions of their own, numpy many."""
    lines = str(error).strip().splitlines()
    other = "reference" if engine == "onnxruntime" else "onnxruntime"
    return PulseError(
        "engine-unsupported",
        node=engine,
        required=required,
        found=lines[0][:300] if lines else type(error).__name__,
        remedy=f"choose --engine {other}; if it fails as well, convert the source model again",
    )


def busy() -> PulseError:
    """The diagnostic for a second thread in a stream: native code notices it by the only ValueError it raises there."""
    return PulseError(
        "stream-busy",
        node="stream",
        required="one call at a time",
        found="another thread that runs this stream",
        remedy="give every thread a stream of its own (they share the model), or take turns by a lock",
    )
