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
MARK = re.compile(r"^```(\w+) (?:long|online)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Drop the marks that tell the tests how to run a block, and give the gallery's pictures their dark twins."""
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
