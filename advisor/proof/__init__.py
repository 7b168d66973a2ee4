"""Proving a gain: interleaved pairs of fio micro-runs around a change, and an exact test over them.

The rooms, in the order in which a session walks through them::

    workloads   what can be measured (catalogue)
    target      the file system and the device behind ``--target``
    scratch     the one file that fio may touch
    covariates  what else the host was doing (the gate, and the blind contamination check)
    fio         one micro-run: command line, process, parsed figures
    schedule    how many pairs, which looks, which significance level, how many bytes
    protocol    the session: claims, gate, scratch, warm-up, pairs, looks, restore
    verdict     pairs to verdict: pure, repeatable from a saved session
    statistics  the exact tests underneath: pure standard library
"""
