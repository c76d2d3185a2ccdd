"""The table of diagnostic codes, from which `docs/diagnostics.md` is generated."""
