"""Names of rows and variables in files."""

from __future__ import annotations

from typing import Any

from pyomo.core.base.label import TextLabeler, cpxlp_label_from_name


class Names:
    """The names that Pyomo's own ``TextLabeler`` gives, several times faster.

    Pyomo puts the whole name together for every row and variable; most of it is that of the component, and is the
    same for all its members.
    """

    def __init__(self) -> None:
        self._whole = TextLabeler()
        self._components: dict[int, str] = {}

    def __call__(self, member: Any) -> str:
        """The name of a row, variable or objective."""
        component = member.parent_component()
        if component is member:
            return str(self._whole(member))
        start = self._components.get(id(component))
        if start is None:
            start = self._components[id(component)] = cpxlp_label_from_name(component.getname(True))
        index = member.index()
        if index.__class__ is int:
            return f"{start}({index})" if index >= 0 else f"{start}(_{-index})"
        if index.__class__ is tuple and len(index) > 1 and all(i.__class__ is int for i in index):
            return f"{start}({'_'.join(map(str, index)).replace('-', '_')})"
        return str(self._whole(member))
