"""Which kernel for which product: gather timings, fit tables, validate and pick; installed as `pulse.costmodel`."""
