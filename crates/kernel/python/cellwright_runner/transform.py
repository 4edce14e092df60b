"""Transforms cell text to Python: magics, shell lines, help, prompts, indentation.

The result equals that of IPython's TransformerManager (see the oracle test), except that line
numbers are preserved: removed lines are replaced by empty ones.
"""

import os
import re

from .scanner import logical_line

_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\n)+")  # empty lines and comments
_INDENT = re.compile(r"[ \t\f]*")
_PYTHON_PROMPT = re.compile(r"^(>>>|\.\.\.) ?")
_IPYTHON_PROMPT = re.compile(r"^((\[\w+\] )?In \[\d+\]: |\s*\.{3,}: ?)")
_HELP = re.compile(r"(%{0,2}(?!\d)[\w*]+(?:\.[\w*]+|\[[^\]\n]+\])*)(\?\??)$")
_ESCAPES = "!?%,;/"


def transform_cell(cell, keep_lines=True):
    """Return the Python text of a cell. With `keep_lines`, every line keeps its number."""
    if cell.startswith("\ufeff"):
        cell = cell[1:]
    if "\r" in cell:
        cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    if not cell.endswith("\n"):
        cell += "\n"
    lines = cell.split("\n")
    lines.pop()
    skipped = 0
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    if skipped == len(lines):
        return cell if keep_lines else "".join(line + "\n" for line in _without_indent(lines))
    lines = _without_prompts(_without_indent(lines[skipped:]))
    blank = "\n" * skipped if keep_lines else ""
    if lines[0].startswith("%%") and not re.match(r"%%\w+\?", lines[0]):
        return blank + cell_magic(lines)
    return blank + "".join(_transformed_lines("\n".join(lines) + "\n", keep_lines))


def _without_indent(lines):
    if lines[0][:1] not in (" ", "\t"):
        return lines
    first = next((line for line in lines if line.strip() and line.lstrip()[0] != "#"), lines[0])
    first = re.match(r"[ \t]*", first).group()
    if not first:
        # Comments may have any indent; code at the margin stays as it is.
        return lines
    # Without common indent (for example with string text at the margin) that of the first line of
    # code counts.
    return _cut_indent(lines, _common_indent(lines) or first)


def _common_indent(lines):
    space = None
    for line in lines:
        if line.strip():
            indent = re.match(r"[ \t]*", line).group()
            space = indent if space is None else os.path.commonprefix((space, indent))
    return space or ""


def _cut_indent(lines, space):
    return [
        (line[len(space) :] if line.startswith(space) else line) if line.strip() else ""
        for line in lines
    ]


def _without_prompts(lines):
    if lines[0].startswith(">>>") or len(lines) > 1 and lines[1].startswith(">>>"):
        lines = [_PYTHON_PROMPT.sub("", line, count=1) for line in lines]
        space = _common_indent(lines)
        lines = _cut_indent(lines, space) if space else lines
    if _IPYTHON_PROMPT.match(lines[0]) or len(lines) > 1 and _IPYTHON_PROMPT.match(lines[1]):
        lines = [_IPYTHON_PROMPT.sub("", line, count=1) for line in lines]
    return lines


def cell_magic(lines):
    """Return the call for `%%name rest` with the lines below as its body."""
    name, _, rest = lines[0][2:].rstrip().partition(" ")
    body = "".join(line + "\n" for line in lines[1:])
    return "get_ipython().run_cell_magic(%r, %r, %r)\n" % (name, rest, body)


def _transformed_lines(text, keep_lines):
    """Yield the transformed text of each logical line."""
    at, size = 0, len(text)
    while at < size:
        blank = _BLANK_LINES.match(text, at)
        if blank:
            yield blank.group()
            at = blank.end()
            continue
        first = _INDENT.match(text, at).end()
        is_escape = text[first] in _ESCAPES and not _is_operator(text, first)
        line = logical_line(text, first)
        call = _help_line_call(text, line, first)
        if call is not None:
            joined = text.count("\n", at, line.end) - 1
            yield text[at:first] + call + "\n" + ("\n" * joined if keep_lines else "")
            at = line.end
            continue
        if is_escape and text[first] == "/" and not text[first + 1 : line.end].strip():
            is_escape = False  # a lone slash
        found = first if is_escape else _assignment_position(line)
        if found is None:
            yield text[at : line.end]
            at = line.end
            continue
        end, joined, content = _join_continuations(text, found)
        call = escape_call(content) if is_escape else _assigned_call(content)
        yield text[at:found] + call + "\n" + ("\n" * joined if keep_lines else "")
        at = end


def _is_operator(text, at):
    """Return whether the text is an operator (`!=`, `%=`, `/=`, `//`) and not an escape."""
    two = text[at : at + 2]
    return two in ("!=", "%=", "/=", "//")


def _join_continuations(text, start):
    """Join a line with its backslash continuations. Returns (end position, number of joined lines,
    text)."""
    parts, at = [], start
    while True:
        end = text.find("\n", at)
        if end < 0:
            end = len(text)
        parts.append(text[at:end])
        at = end + 1
        if not parts[-1].endswith("\\") or at >= len(text):
            break
    pieces = [part.rstrip()[:-1] for part in parts[:-1]]
    pieces.append(parts[-1].rstrip())
    return min(at, len(text)), len(parts) - 1, " ".join(pieces)


def _assignment_position(line):
    """Return the position of the `%` or `!` after the first `=` of a logical line if it starts a
    magic or command, else None."""
    depth = 0
    for index, (kind, word, _) in enumerate(line.tokens):
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif word == "=" and kind == "other" and depth <= 0:
            if index == 0 or index + 1 >= len(line.tokens):
                return None
            _, follower, position = line.tokens[index + 1]
            if follower == "%" and index + 2 < len(line.tokens):
                name = line.tokens[index + 2]
                if name[0] == "name" and not name[1][0].isdigit():
                    return position
            elif follower == "!":
                return position
            return None
    return None


def _assigned_call(content):
    if content.startswith("!"):
        return "get_ipython().getoutput(%r)" % content[1:]
    return line_magic(content[1:])


def line_magic(content):
    """Return the call of run_line_magic for `name args`."""
    name, _, args = content.partition(" ")
    return "get_ipython().run_line_magic(%r, %r)" % (name, args)


def escape_call(line):
    """Return the call for a line that begins with an escape character."""
    if line[:2] in ("!!", "??"):
        escape, content = line[:2], line[2:]
    else:
        escape, content = line[:1], line[1:]
    if escape == "!":
        return "get_ipython().system(%r)" % content
    if escape == "!!":
        return "get_ipython().getoutput(%r)" % content
    if escape == "%":
        return line_magic(content)
    if escape in ("?", "??"):
        return help_call(content, escape) if content else "get_ipython().show_usage()"
    name, _, args = content.partition(" ")
    if escape == ",":
        return '%s("%s")' % (name, '", "'.join(args.split()))
    if escape == ";":
        return '%s("%s")' % (name, args)
    return "%s(%s)" % (name, ", ".join(args.split()))


def help_call(target, escape):
    """Return the call of pinfo, pinfo2 or psearch for `name?`."""
    method = "pinfo2" if escape == "??" else "psearch" if "*" in target else "pinfo"
    return "get_ipython().run_line_magic(%r, %r)" % (method, target)


def _help_line_call(text, line, first):
    """Return the call for a logical line that ends in `?`, or None."""
    if not line.tokens or line.tokens[-1][1] != "?" or len(line.tokens) < 2:
        return None
    match = _HELP.search(text[first : line.end].rstrip())
    return help_call(match.group(1), match.group(2)) if match else None
