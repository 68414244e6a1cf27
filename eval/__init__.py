"""Measures the detectors on public data: `make eval`."""
