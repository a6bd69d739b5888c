"""Copies the solver table of the project root into the built package."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithSolverTable(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "octsvm"
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(__file__).parent / "solvers.yaml", target / "solvers.yaml")


setup(cmdclass={"build_py": BuildWithSolverTable})
