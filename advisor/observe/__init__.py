"""What a host does over an interval: samples of its counters, and the rates of a span between them.

`advisor.observe.rates` takes samples, `advisor.observe.sample` says what rose between them, `advisor.observe.rates` has
the figures of each kind as records. A reader is a pure parser of what the kernel prints and a read through `Host`, or
of bytes that an instrument of the running machine gives; both end as numbers in a `Sample`. Only numbers and a few
words are recorded, so a recorded span answers the same questions anywhere, whichever reader took it.
"""
