"""What binds a host over an interval: causes, each with its evidence, and the narrowest of them.

A cause is a decorated function like a rule: it reads an `Observation` (a span of counters and the facts of the host)
and yields a `BindingCause` with the share of time or requests that it accounts for. `advisor.diagnosis.diagnose` leaves
those that no narrower one explains.
"""
