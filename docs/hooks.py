"""What the built pages need beyond Markdown."""

import re
from typing import Any

ROLE = re.compile(r":(?:func|class|meth|data|mod|attr):(<code[^>]*>)~?")
PICTURE = re.compile(r"!\[([^\]]*)\]\((gallery/[\w-]+)\.svg\)")
MARK = re.compile(r"^```(\w+) (?:long|online)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Drop the marks that tell the tests how to run a block, and give the gallery's pictures their dark twins."""
    both = r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)"
    return PICTURE.sub(both, MARK.sub(r"```\1", markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Show the docstrings' roles, such as :func:`octsvm.solve`, as code."""
    return ROLE.sub(r"\1", html)
