"""The command line: ``octsvm`` and its commands.

Everything heavy is imported inside the commands, so that ``octsvm --help`` answers at once.
"""

from __future__ import annotations

import click

from .. import __version__
from .completion import completion
from .doctor import doctor
from .fit import fit
from .options import Commands
from .plan import plan
from .plot import plot
from .predict import predict
from .race import race
from .read import read
from .report import report
from .show import show
from .size import size
from .solvers import solvers
from .suspects import suspects
from .table2 import table2
from .tune import tune
from .write import write


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Exit codes:
    0  done
    1  something unexpected; doctor: something needed is missing or does not work; fit: the solver broke down
    2  wrong usage, data that cannot be used, a target that cannot be written, or a solver that is not here, does not
       take the model, or has a licence too small for it; the message says what to do
    3  fit: the model has no solution, so there is no tree
    4  fit, read: a tree, but unverified: the solver's answer did not hold outside the solver
    5  race: two solvers contradict each other
  130  interrupted (Ctrl-C)
  143  ended by SIGTERM
A fit that either ends shows and saves its best tree, and ends with 0.""",
)
@click.version_option(__version__, prog_name="octsvm")
def main() -> None:
    """Optimal classification trees that survive wrong labels: exact models, checked answers.

    Results go to stdout, as text or with --json as one JSON object; progress and messages go to stderr. Colours
    appear on a terminal only, and not where NO_COLOR is set.

    \b
    Examples:
      octsvm fit breast_cancer --depth 1 --time-limit 30
      octsvm fit measurements.csv --label species --formulation oct --out tree.json
      octsvm show tree.json
      octsvm plot tree.json --out tree.svg
      octsvm report tree.json --out report.html
      octsvm suspects tree.json --keep plant --out suspects.csv
      octsvm predict tree.json new.csv --out predictions.csv
      octsvm size --n 200 --p 10 --depth 2
      octsvm solvers
      octsvm plan toy --depth 1
      octsvm race toy --formulation oct --depth 1 --time-limit 20
      octsvm table2 --quick
      octsvm doctor
    """


for command in (
    fit,
    tune,
    predict,
    show,
    plot,
    report,
    suspects,
    write,
    read,
    size,
    solvers,
    plan,
    race,
    table2,
    doctor,
    completion,
):
    main.add_command(command)
