"""The only places that import solver interfaces. Each backend module offers ``solve`` and ``FixedProgram``."""
