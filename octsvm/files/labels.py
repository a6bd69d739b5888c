"""Names of rows and variables in files."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pyomo.core.base.label import NameLabeler, TextLabeler, cpxlp_label_from_name

# What readers of .lp take for a number, or for the head of a section.
_MISREAD = re.compile(
    r"[\d.]|e\d|(free|inf(inity)?|st|such|subject|end|bounds?|bin(ary|aries)?|gen(erals?)?|int(egers?)?|min(imi[sz]e)?|max(imi[sz]e)?"
    r"|semis?|sc|sos[12]?)$",
    re.IGNORECASE,
)
LONGEST = 100  # letters: CBC takes no more, most readers 255, and then misread the file or refuse it


def _readable(name: str) -> str:
    """The name as all readers take it: what is no ASCII by its code point, the end of a long one by its hash."""
    if not name.isascii():
        name = re.sub(r"[^\x00-\x7f]", lambda letter: f"_{ord(letter[0]):x}", name)
    if len(name) > LONGEST:
        name = f"{name[: LONGEST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"_{name}" if _MISREAD.match(name) else name


class Names:
    """The names that Pyomo's own labelers give, several times faster; those that readers would misread begin with ``_``.

    Pyomo puts the whole name together for every row and variable; most of it is that of the component, and is the
    same for all its members. With ``plain`` they are as in Pyomo, ``split.s[1,2]``; otherwise in the letters that .lp and
    .mps admit, ``split_s(1_2)``.
    """

    def __init__(self, plain: bool = False) -> None:
        self._plain = plain
        self._whole = NameLabeler() if plain else TextLabeler()
        self._components: dict[int, str] = {}

    def __call__(self, member: Any) -> str:
        """The name of a row, variable or objective."""
        component = member.parent_component()
        if component is member:
            return self._by_pyomo(member)
        start = self._components.get(id(component))
        if start is None:
            start = component.getname(True)
            start = start if self._plain else _readable(cpxlp_label_from_name(start))
            self._components[id(component)] = start
        index = member.index()
        if index.__class__ is int:
            text = str(index)
        elif index.__class__ is tuple and len(index) > 1 and all(i.__class__ is int for i in index):
            text = ",".join(map(str, index))
        else:
            return self._by_pyomo(member)
        if self._plain:
            return f"{start}[{text}]"
        if len(start) + len(text) > LONGEST:
            return self._by_pyomo(member)
        return f"{start}({text.replace(',', '_').replace('-', '_')})"

    def _by_pyomo(self, member: Any) -> str:
        name = str(self._whole(member))
        return name if self._plain else _readable(name)
