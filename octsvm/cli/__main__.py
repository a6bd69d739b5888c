"""``python -m octsvm.cli``."""

from .main import main

main(prog_name="octsvm")
