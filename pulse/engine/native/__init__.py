"""The native engine: a pulsed graph lowered to a flat program of native steps, one call per pulse."""
