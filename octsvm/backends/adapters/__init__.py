"""One module for each engine that runs in a process of its own: ``version()`` and ``solve(job, reporter) -> Answer``.

What the engine does not take, ``solve`` answers with :class:`~octsvm.backends.protocol.Refused`.
They are imported there alone, and know numpy, their engine and :mod:`octsvm.backends.protocol`.
"""
