"""Proving a gain: interleaved pairs of fio micro-runs around a change, and an exact test over them.

The rooms, in the order in which a session walks through them::

    workloads   what can be measured (catalogue)
    target      the file system and the device behind ``--target``
    scratch     the one file that fio may touch
    covariates  what else the host was doing (the gate, and the blind contamination check)
    process     a process that is bounded in time and ends with us
    fio         one micro-run: command line, parsed figures
    path        which way is measured, and whether it carries what an arm says
    schedule    how many pairs, which looks, which significance level, how many bytes
    arms        the change under test: activated, made to act, undone
    protocol    the session: claims, gate, scratch, warm-up, pairs, looks, restore
    verdict     pairs to verdict: pure, repeatable from a saved session
    statistics  the exact tests underneath: pure standard library

What ``prove`` shares with ``bench``, and what is kept of both::

    measurer    fio runs with their covariates, and the budgets
    recorder    the record while it grows, and the result that is written at its end
    bench       one series of the host as it is
    series      its records and figures: pure
    comparison  two saved series in a table: pure; two_sample is the statistics underneath
    archive     a result in a file; kept is where it goes unasked
"""
