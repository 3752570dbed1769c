"""Lowering: nodes of a net to native steps over views of memory."""
