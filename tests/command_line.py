"""The command line in this process, as tests call it."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from octsvm import cli


def run(*args: Any) -> Result:
    """What ``octsvm`` with these arguments prints, and its exit code."""
    result = CliRunner().invoke(cli.main, [str(a) for a in args])
    assert "Traceback" not in result.output
    return result
