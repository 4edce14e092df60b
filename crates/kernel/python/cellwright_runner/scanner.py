"""A scanner for Python text that contains magics and shell lines. It recognizes strings, comments,
brackets and continuations.

The tokenize module is not used: it differs between versions, fails at the first character that is
not Python (3.12 and newer), and costs several milliseconds to import.
"""

import re
import sys

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\f]+)
  | (?P<comment>\#[^\n]*)
  | (?P<string>(?:[rRbBuUfFtT]{1,2})?(?:\"\"\"|'''|\"|'))
  | (?P<name>\w+)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<joined>\\\n)
  | (?P<newline>\n)
  | (?P<op>\*\*=|//=|>>=|<<=|==|!=|<=|>=|:=|->|[-+*/%&|^@]=)
  | (?P<other>.)
    """,
    re.VERBOSE,
)
_STRING_ENDS = {
    '"': re.compile(r'(?:[^"\\\n]|\\.)*"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]|\\.)*'", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL),
}
NESTED_QUOTES = sys.version_info >= (3, 12)  # from 3.12 on f-strings may contain their own quote


class LogicalLine:
    """A logical line: its start and end, and its tokens as (kind, text, position)."""

    __slots__ = ("start", "end", "tokens", "complete")

    def __init__(self, start):
        self.start = start
        self.end = start
        self.tokens = []
        self.complete = True


def logical_line(text, start):
    """Scan the logical line that begins at `start`. An unclosed string or bracket extends to the
    end of the text."""
    line = LogicalLine(start)
    tokens = line.tokens
    depth, at, size = 0, start, len(text)
    while at < size:
        match = _TOKEN.match(text, at)
        kind = match.lastgroup
        end = match.end()
        if kind == "newline":
            if depth <= 0:
                line.end = end
                return line
        elif kind == "string":
            end = string_end(text, at, end)
            if end < 0:
                quote = match.group()[-3:]
                if quote in ('"""', "'''"):
                    line.end = size
                    line.complete = False
                    return line
                # A lone quote: the rest of the line is skipped.
                end = text.find("\n", at)
                end = size if end < 0 else end
            tokens.append((kind, text[at:end], at))
        elif kind == "open":
            depth += 1
            tokens.append((kind, match.group(), at))
        elif kind == "close":
            depth = max(0, depth - 1)
            tokens.append((kind, match.group(), at))
        elif kind != "space" and kind != "joined":
            tokens.append((kind, match.group(), at))
        at = end
    line.end = size
    line.complete = depth <= 0
    return line


def string_end(text, start, quote_end):
    """Return the position after the string that starts at `start`, whose opening quote ends at
    `quote_end`; -1 if the string has no end."""
    head = text[start:quote_end]
    quote = head.lstrip("rRbBuUfFtT")
    prefix = head[: len(head) - len(quote)].lower()
    if NESTED_QUOTES and ("f" in prefix or "t" in prefix):
        return _formatted_end(text, quote_end, quote)
    match = _STRING_ENDS[quote].match(text, quote_end)
    return match.end() if match else -1


def _formatted_end(text, at, quote):
    """Return the end of an f-string whose expressions may contain strings with the same quotes."""
    size, width = len(text), len(quote)
    depths = []  # for each open replacement field: bracket depth, or -1 inside its format spec
    while at < size:
        char = text[at]
        if not depths or depths[-1] < 0:
            if char == "\\":
                at += 2
                continue
            if text.startswith(quote, at):
                return at + width
            if char == "\n" and width == 1:
                return -1
            if char == "{":
                if not depths and text.startswith("{{", at):
                    at += 2
                    continue
                depths.append(0)
            elif char == "}" and depths:
                depths.pop()
            at += 1
            continue
        if char in "([{":
            depths[-1] += 1
        elif char in ")]":
            depths[-1] -= 1
        elif char == "}":
            if depths[-1] <= 0:
                depths.pop()
            else:
                depths[-1] -= 1
        elif char == ":" and depths[-1] == 0:
            depths[-1] = -1
        elif char in "\"'":
            triple = text[at : at + 3]
            inner = triple if triple in ('"""', "'''") else char
            back = at
            while back > 0 and text[back - 1] in "rRbBuUfFtT" and at - back < 2:
                back -= 1
            at = string_end(text, back, at + len(inner))
            if at < 0:
                return -1
            continue
        elif char == "#" and width == 3:
            line_end = text.find("\n", at)
            if line_end < 0:
                return -1
            at = line_end
            continue
        at += 1
    return -1
