"""The pulsing transformer: stream facts, one rule file per family of ops, the walk, the artefact's functions."""
