"""One module for each engine that runs in a process of its own: ``version()`` and ``solve(job, reporter) -> Answer``.

They are imported there alone, and know numpy, their engine and :mod:`octsvm.backends.protocol`.
"""
