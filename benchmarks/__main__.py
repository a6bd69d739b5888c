"""Studies: what they measure, run, reported, compared, and shown in docs/.

    python -m benchmarks list                                      the studies
    python -m benchmarks run NAME --out results.jsonl              measure what is not in the file yet
    python -m benchmarks run NAME --quick                          a small run that shows that it works
    python -m benchmarks run NAME --only set=heart,sonar --only depth=1
    python -m benchmarks report NAME results.jsonl                 tables in Markdown
    python -m benchmarks compare NAME before.jsonl after.jsonl     ratios of two runs
    python -m benchmarks pages                                     write the committed results into docs/
    python -m benchmarks check                                     whether docs/ shows them, and which are older than the code

`run NAME --help` gives the options of a study.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from . import pages
from .run import read, run
from .study import OPTIONS, REQUIRED, Line, find, names, results_of, summary
from .tables import compare


def lines_of(name: str, path: Path | None) -> list[Line]:
    """The lines to report: of a file, or those committed."""
    path = path or results_of(name)
    if not path.exists():
        raise SystemExit(
            f"There is no file {path}. Measure it by: python -m benchmarks run {name} --out FILE"
        )
    return pages.results(find(name), path)


def told(prog: str, text: str | None) -> argparse.ArgumentParser:
    """A parser that shows the text as it stands."""
    as_it_stands = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=prog, description=text, formatter_class=as_it_stands)


def run_options(name: str) -> argparse.ArgumentParser:
    """The options of ``run NAME``."""
    study = find(name)
    parser = told(f"python -m benchmarks run {name}", import_module(f"benchmarks.studies.{name}").__doc__)
    parser.add_argument("--out", type=Path, help=f"JSON lines, appended ({name}.jsonl)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="FIELD=VALUE,...", help="only these cells; patterns"
    )
    parser.add_argument("--again", action="store_true", help="also cells that are in the file")
    parser.add_argument("--quick", action="store_true", help="few and small cells")
    for option, default in study.options.items():
        kind, meaning = OPTIONS[option]
        if kind is bool:
            parser.add_argument(f"--{option}", action="store_true", help=meaning)
            continue
        how: dict[str, Any] = {"required": True} if default is REQUIRED else {"default": default}
        shown = "" if default is None or default is REQUIRED else f" ({default})"
        parser.add_argument(f"--{option}", type=kind, help=meaning + shown, **how)
    return parser


def run_command(words: list[str]) -> int:
    """``run NAME ...``: measure, then report what there is."""
    if not words or words[0].startswith("-"):
        raise SystemExit(f"Name a study: {', '.join(names())}.")
    name, study = words[0], find(words[0])
    parser = run_options(name)
    given = parser.parse_args(words[1:])
    only = {}
    for text in given.only:
        field, mark, values = text.partition("=")
        if not mark:
            parser.error(f"--only {text}: give FIELD=VALUE, or FIELD=VALUE,VALUE")
        only[field] = values.split(",")
    options: dict[str, Any] = {option: getattr(given, option) for option in study.options}
    if given.quick:
        options |= study.quick
    for option in ("data", "package"):
        folder = options.get(option)
        if folder is not None and not folder.is_dir():
            print(f"SKIPPED: there is no folder {folder}; nothing was measured.")
            return 0
        options |= {option: folder.resolve()} if folder else {}
    out = (given.out or Path(f"{name}.jsonl")).resolve()
    code = run(name, out, study.asked(quick=given.quick, **options), only, given.again)
    found = [line for line in read(out) if line.get("quick", False) == given.quick]
    if found:
        print(study.report(study.last(found)))
        print(f"\n{len(found)} lines in {out}", file=sys.stderr)
    return code


def main(words: list[str] | None = None) -> int:
    """The command line, or ``words``."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["run"]:
        return run_command(words[1:])
    parser = told("python -m benchmarks", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the studies")
    commands.add_parser("run", help="measure a study's cells")
    one = commands.add_parser("report", help="tables in Markdown")
    one.add_argument("name", choices=names(), metavar="NAME")
    one.add_argument("results", type=Path, nargs="?", help="(the committed ones)")
    one.add_argument("--part", help="only this part of it, or one that stands beside it")
    one = commands.add_parser("compare", help="ratios of two runs")
    one.add_argument("name", choices=names(), metavar="NAME")
    one.add_argument("before", type=Path)
    one.add_argument("after", type=Path)
    commands.add_parser("pages", help="write the committed results into docs/")
    commands.add_parser("check", help="whether docs/ shows them, and which are older than the code")
    asked = parser.parse_args(words)
    if asked.command == "list":
        print("\n".join(f"{name:18} {summary(name)}" for name in names()))
    elif asked.command == "report":
        study = find(asked.name)
        if asked.part and asked.part not in study.parts:
            parser.error(f"--part {asked.part}: {asked.name} has {', '.join(study.parts) or 'no parts'}")
        show = study.parts[asked.part] if asked.part else study.report
        print(show(lines_of(asked.name, asked.results)))
    elif asked.command == "pages":
        written = [f"{page.name} was written" for page in pages.write()]
        print("\n".join(written) or "Every page is as it should be.")
    elif asked.command == "check":
        print("\n".join(pages.age(name) for name in pages.committed()))
        wrong = [page.name for page in pages.differing()]
        for name in wrong:
            print(f"{name} does not show the results: run python -m benchmarks pages")
        return 1 if wrong else 0
    else:
        study = find(asked.name)
        print(compare(study, lines_of(asked.name, asked.before), lines_of(asked.name, asked.after)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
