"""What the values of the general profiles change, counted on a real kernel: one module for each record of
docs/recorded-sessions.md. `python -m benchmarks.profile_records` lists and runs them in the lab guest.
"""
