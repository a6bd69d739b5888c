"""Measurements: ``python -m benchmarks run --out results.jsonl``. agreement.py and real_data.py have their own commands."""
