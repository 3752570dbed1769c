"""`python -m pulse.cli` is the same as the `pulse` command."""

from pulse.cli import main

main()
