"""Running a pulsed model: engines, and the stream that keeps its state."""
