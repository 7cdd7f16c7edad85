"""Benches: what livesign costs, each figure beside something the reader knows. ``python -m bench --help``."""
