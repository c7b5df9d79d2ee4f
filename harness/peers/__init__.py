"""The recorder and other load generators on the same work, each held against the emulator's truth.

`make bench` runs them and writes data/peers/*.duckdb, of which the page of peers is made.
"""
