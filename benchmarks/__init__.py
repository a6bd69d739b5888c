"""Measurements: ``python -m benchmarks list`` names the studies, ``python -m benchmarks run NAME`` runs one."""
