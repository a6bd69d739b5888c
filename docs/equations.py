"""Typesets the equations of the built pages: from plain text, as it stands in Markdown and docstrings, to MathML.

An indented block is equations, one a line; code and output stand in fences. The text is what an editor and ``help()`` show,
so one source serves all of them. How it is read:

    e_it, z_i,2t, sum_{t in level u}   subscripts: letters, digits, +1 run on, as do commas without a space; braces
    sum, min, delta, <=, ..            signs, and Greek letters by name or as themselves
    ||w||, |w|, 1/2, a'x, x^2          norms, numbers over numbers, transposition, powers
    level, binary                      words of three letters or more are text

Three spaces or more part columns: a number in brackets is the equation's, and what begins with a word is a remark.
"""

from __future__ import annotations

import html
import re

# fmt: off
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ",
    "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
}
# fmt: on
SIGNS = {
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "->": "→",
    "..": "…",
    "...": "…",
    "-": "−",
    "*": "·",
    "||": "‖",
    "'": "′",
}
BIG = {"sum": "∑", "Σ": "∑"}
UNDER = (*BIG, "min", "max")  # what they run over stands below them
FUNCTIONS = ("min", "max", "log", "exp", "sqrt")
SHORT_WORDS = ("in", "of", "or", "at", "if", "is", "no", "to", "by", "on", "as")

TOKEN = re.compile(
    r"""(?P<quoted>"[^"]*"|s\.t\.|\(\d+[′']?\)(?=\s))
    |(?P<over>\d+)/(?P<under>\d+)
    |(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)
    |(?P<name>[^\W\d_]\u0304|[^\W\d_]+)(?P<index>\d+(?![\w.]))?(?P<prime>'(?=_))?
        (?:_(?:\{(?P<braced>(?:[^{}]|\{[^{}]*\})*)\}(?P<rest>,\w+)?
             |(?P<plain>[^\W_]+(?:,[^\W_]+)*(?:_[^\W_]+)?(?:[+-]\d)?(?:\([^()\s]*\))?)))?
    |(?P<sign><=|>=|!=|->|\.{2,3}|\|\||\S)
    |(?P<space>\s+)""",
    re.VERBOSE,
)
BLOCK = re.compile(
    r'<div class="language-output highlight"><pre><span></span><code>(.*?)</code></pre></div>', re.DOTALL
)
SYMBOL = re.compile(
    r"(?<![\w/.&;])(?:(?:[A-Za-zα-ωΣ])_[A-Za-zα-ω0-9]{1,3}(?:,[a-z0-9]{1,2})?|(?:sum|max|min)_[a-z])(?![\w(/]|\.\w)"
)
NO_PROSE = re.compile(r"(<(pre|code|script|style|math|title|svg|head)\b.*?</\2>|<[^>]+>)", re.DOTALL)


def typeset(page: str) -> str:
    """A page's HTML with its indented blocks, and the symbols and signs in its prose, as MathML."""
    page = BLOCK.sub(lambda m: _table(html.unescape(re.sub(r"<[^>]+>", "", m[1]))), page)
    parts = NO_PROSE.split(page)  # prose, markup and its name, again and again
    for k in range(0, len(parts), 3):
        prose = SYMBOL.sub(lambda m: f"<math>{''.join(_tokens(m[0]))}</math>", parts[k] or "")
        parts[k] = prose.replace(" &lt;= ", " ≤ ").replace(" &gt;= ", " ≥ ")
        if k + 2 < len(parts):
            parts[k + 2] = ""
    return "".join(parts)


def formula(*columns: str) -> str:
    """Formulas in one line; their text is the alternative for programs that read aloud."""
    plain = html.escape(" ".join(" ".join(columns).split()))
    body = '<mspace width="2em"/>'.join("".join(_tokens(text)) for text in columns)
    return f'<math display="block" alttext="{plain}"><mrow>{body}</mrow></math>'


def _table(block: str) -> str:
    lines = [line for line in block.splitlines() if line.strip()]
    least = min(len(line) - len(line.lstrip()) for line in lines)
    rows = []
    for line in lines:
        indent = len(line) - len(line.lstrip()) - least
        formulas: list[str] = []
        number = remark = ""
        for part in re.split(r"\s{3,}", line.strip()):
            if formulas and re.fullmatch(r"\(\d[^a-z]*\)", part):
                number = part
            elif formulas and formulas[-1] not in FUNCTIONS and _is_remark(part):
                remark = part
            else:
                formulas.append(part)
        cell = formula(*formulas)
        pad = f' style="padding-left: {0.6 * min(indent, 8):.1f}em"' if indent > 1 else ""
        rows.append(
            f"<tr><td{pad}>{cell}</td><td>{html.escape(number)}</td><td>{html.escape(remark)}</td></tr>"
        )
    return f'<div class="equations"><table class="equations">{"".join(rows)}</table></div>'


def _is_remark(part: str) -> bool:
    first = re.match(r"[^\W\d_]{3,}(?![\w'])", part)
    outside = re.sub(r"\([^)]*\)", "", part)
    return (
        first is not None and first[0] not in (*GREEK, *BIG, *FUNCTIONS) and not re.search(r"[<>=]", outside)
    )


def _name(name: str) -> str:
    if name in GREEK:
        return f"<mi>{GREEK[name]}</mi>"
    if name in BIG:
        return f"<mo>{BIG[name]}</mo>"
    if name in FUNCTIONS:
        return f"<mi>{name}</mi>"
    if _is_word(name):
        return f"<mtext>{name}</mtext>"
    return "".join(f"<mi>{letter}</mi>" for letter in re.findall(".\u0304?", name))


def _is_word(name: str) -> bool:
    known = name in GREEK or name in BIG or name in FUNCTIONS
    return not known and (name in SHORT_WORDS or (len(name) > 2 and not name.isupper()))


def _row(parts: list[str]) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _subscript(text: str) -> str:
    """What stands below: letters side by side, ``2t+1``, ``parent(t)``, ``gj_v``, or words and letters."""
    if " " in text:
        return _row(_tokens(text))
    out = []
    for part in re.findall(r"[^\W\d_]+_\w+|[^\W\d_]+|\d+|.", text):
        if "_" in part:
            base, below = part.split("_", 1)
            out.append(f"<msub>{_row([_name(base)])}{_subscript(below)}</msub>")
        elif part in GREEK or part in FUNCTIONS or part == "parent":
            out.append(_name(part))
        elif part.isalpha():
            out += [f"<mi>{letter}</mi>" for letter in part]
        else:
            out.append(f"<mn>{part}</mn>" if part.isdigit() else _sign(part))
    return _row(out)


def _named(found: re.Match[str]) -> list[str]:
    """A name with what stands below it: at the last letter, where the name is several variables side by side."""
    text = (found["braced"] or "") + (found["rest"] or "") or found["plain"]
    below = ([f"<mn>{found['index']}</mn>"] if found["index"] else []) + ([_subscript(text)] if text else [])
    name = found["name"]
    if not below:
        return [_name(name)]
    alone = len(name) == 1 or name[1:] == "\u0304" or name in GREEK or name in UNDER or _is_word(name)
    before, last = ("", name) if alone else (name[:-1], name[-1])
    tag = "munder" if name in UNDER else "msub"
    shown = f'<mo movablelimits="true">{last}</mo>' if last in FUNCTIONS else _name(last)
    symbol = _row([shown, *([_sign("'")] if found["prime"] else [])])
    return [*([_name(before)] if before else []), f"<{tag}>{symbol}{_row(below)}</{tag}>"]


def _sign(sign: str) -> str:
    look = ' stretchy="false"' if sign in "()[]{}|" or sign in ("||", "‖") else ""
    if sign in ("|", "||", "‖", "'"):
        look += ' lspace="0" rspace="0"'
    return f"<mo{look}>{html.escape(SIGNS.get(sign, sign))}</mo>"


def _tokens(text: str) -> list[str]:
    out: list[str] = []
    words: list[str] = []
    power = False
    text = text.replace("½", "1/2").replace("²", "^2").replace("`", "")
    for found in [*TOKEN.finditer(text), None]:
        if found is not None and (found["quoted"] or (found["name"] == found[0] and _is_word(found[0]))):
            words.append(found[0])
            continue
        if found is not None and found["space"] and words and len(found[0]) == 1:
            continue
        if words:
            after = "" if found is None or found[0] in ",;:)" else "\u00a0"
            out.append(f"<mtext>\u00a0{html.escape(' '.join(words))}{after}</mtext>")
            words = []
        if found is None:
            break
        if found["space"]:
            if len(found[0]) > 1 and re.search(r"[,;]$", text[: found.start()]):
                out.append('<mspace width="1.5em"/>')
        elif found[0] == "^":
            power = True
        else:
            made = _made(found)
            if found[0] == "-" and _begins(out):
                made = ['<mo form="prefix">−</mo>']
            if power:
                made, power = [f"<msup>{out.pop()}{made[0]}</msup>", *made[1:]], False
            out += made
    return out


def _begins(before: list[str]) -> bool:
    """Whether what comes next begins an operand, so that a minus is a sign."""
    closing = [_sign(sign) for sign in (")", "]", "}", "|", "||", "'")]
    return not before or (before[-1].startswith(("<mo", "<mspace")) and before[-1] not in closing)


def _made(found: re.Match[str]) -> list[str]:
    if found["over"]:
        return [f"<mfrac><mn>{found['over']}</mn><mn>{found['under']}</mn></mfrac>"]
    if found["number"]:
        return [f"<mn>{found['number']}</mn>"]
    return _named(found) if found["name"] else [_sign(found["sign"])]
