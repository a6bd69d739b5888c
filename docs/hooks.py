"""What the built pages need beyond Markdown."""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from equations import typeset
from mkdocs.utils import get_relative_url

ROLE = re.compile(r":(?:func|class|meth|data|mod|attr):(<code[^>]*>)~?")
PICTURE = re.compile(r"!\[([^\]]*)\]\((gallery/[\w-]+)\.svg\)")
SHIM = "https://unpkg.com/iframe-worker/shim"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^```(\w+) (?:long|online)$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Drop the marks that tell the tests how to run a block, and give the gallery's pictures their dark twins.

    Examples that go on from each other can be had in one file.
    """
    found = list(CODE.finditer(markdown))
    if len(found) > 1 and "/" not in page.file.src_uri:
        name = f"code/{page.file.name}.py"
        target = Path(config["site_dir"]) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(block[1] for block in found), encoding="utf-8")
        told = f'*The examples of this page go on from each other: <a href="{name}" download>all in one file</a>.*\n\n'
        markdown = markdown[: found[0].start()] + told + markdown[found[0].start() :]
    both = r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)"
    return PICTURE.sub(both, MARK.sub(r"```\1", markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Show the docstrings' roles, such as :func:`octsvm.solve`, as code, and indented blocks as equations."""
    return typeset(ROLE.sub(r"\1", html))


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Let the search of pages that are opened as files find its script here, not in the network."""
    return output.replace(SHIM, get_relative_url("vendored/iframe-worker.js", page.url))


def on_post_template(output: str, **_: Any) -> str:
    """As above, for the page that says that there is none."""
    return output.replace(SHIM, "vendored/iframe-worker.js")
