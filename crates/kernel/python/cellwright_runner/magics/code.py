"""%load, %save, %macro, %rerun, %recall: code of files, of the history and of names."""

import os

from .. import lazy
from ..state import STATE
from . import UsageError, options, split
from .history import inputs, select, text_of


class Macro:
    """Code that runs when a cell consists of its name."""

    def __init__(self, code):
        self.value = code if code.endswith("\n") else code + "\n"

    def __str__(self):
        return self.value

    def __repr__(self):
        return "IPython.macro.Macro(%r)" % self.value

    def __add__(self, other):
        if not isinstance(other, (Macro, str)):
            raise TypeError
        return Macro(self.value + str(other))


def read(path):
    """Return the text of a Python file in its declared encoding."""
    with lazy.stdlib("tokenize").open(path) as file:
        return file.read()


def find_file(name):
    """Return the path of a file, whose `.py` may be omitted; None if there is none."""
    path = os.path.expanduser(name)
    for candidate in (path, path + ".py"):
        if os.path.isfile(candidate):
            return candidate
    return None


def find_user_code(target, raw=True, search_ns=False):
    """Return the text that a range of the history, an URL, a file or a name stands for."""
    code = text_of(target, raw)
    if code:
        return code
    if target.startswith(("http://", "https://")):
        with lazy.stdlib("urllib.request").urlopen(target) as response:
            return response.read().decode("utf-8", "replace")
    path = find_file(target)
    if path is not None:
        return read(path)
    if os.path.isdir(os.path.expanduser(target)):
        raise ValueError("'%s' is a directory, not a regular file." % target)
    if search_ns:
        found = lazy.load("inspection").resolve(target)
        if found is not None:
            try:
                return lazy.stdlib("inspect").getsource(found[0])
            except (OSError, TypeError):
                pass
    try:
        value = eval(target, STATE.ns)
    except Exception as error:
        raise ValueError(
            "'%s' was not found in history, as a file, url, nor in the user namespace." % target
        ) from error
    if isinstance(value, str):
        return value
    if isinstance(value, Macro):
        return value.value
    raise TypeError("%s is neither a string nor a macro." % target, value)


def load(shell, line):
    """%load [-r LINES] [-s NAMES] [-n] file | URL | range | name: print its text. In a notebook it
    replaces the cell, which does not run either."""
    found, rest = options(line, ("y", "n"), ("r", "s"), "%load [-r LINES] [-s NAMES] [-n] file")
    text = find_user_code(_without_quotes(rest), search_ns="n" in found)
    if "s" in found:
        text = _blocks(text, found["s"].split(","))
    if "r" in found:
        lines, chosen = text.split("\n"), []
        for part in found["r"].replace(",", " ").split():
            first, mark, last = part.partition("-" if "-" in part else ":")
            start = int(first or 1) - 1
            end = start + 1 if not mark else int(last or len(lines)) - (mark == ":" and bool(last))
            chosen += lines[start:end]
        text = lazy.stdlib("textwrap").dedent("\n".join(chosen))
    print(text.rstrip("\n"))


def _without_quotes(text):
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _blocks(text, names):
    """Return the functions and classes of these names."""
    ast = lazy.stdlib("ast")
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            found[node.name] = "\n".join(text.split("\n")[first - 1 : node.end_lineno])
    missing = [name for name in names if name not in found]
    if missing:
        raise UsageError("The symbol `%s` was not found" % missing[0])
    return "\n\n\n".join(found[name] for name in names)


def pycat(shell, line):
    """%pycat file: show a Python file."""
    try:
        text = find_user_code(_without_quotes(line.strip()))
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    lazy.load("magics.help").page(text.rstrip("\n"))


def save(shell, line):
    """%save [-f] [-a] [-r] file [range …]: write inputs into a file; with -r untransformed ones."""
    found, rest = options(line, ("f", "a", "r"), (), "%save [-f] [-a] [-r] file [range …]")
    words = split(rest)
    if not words:
        raise UsageError("Missing filename.")
    path = os.path.expanduser(words[0])
    if not path.endswith((".py", ".ipy")):
        path += ".ipy" if "r" in found else ".py"
    exists = os.path.isfile(path)
    if exists and not ("f" in found or "a" in found):
        raise UsageError("File `%s` exists. Use `%%save -f %s` to force overwrite" % (path, line))
    try:
        text = find_user_code(" ".join(words[1:]), "r" in found)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error.args[0])) from None
    with open(path, "a" if "a" in found else "w", encoding="utf-8") as file:
        if not exists or "a" not in found:
            file.write("# coding: utf-8\n")
        file.write(text if text.endswith("\n") else text + "\n")
    print("The following commands were written to file `%s`:" % path)
    print(text)


def macro(shell, line):
    """%macro [-r] [-q] name range …: a name that runs inputs again; without a name, the list."""
    found, rest = options(line, ("r", "q"), (), "%macro [-r] [-q] name range …")
    words = rest.split()
    if not words:
        return sorted(name for name, value in STATE.ns.items() if isinstance(value, Macro))
    if len(words) == 1:
        raise UsageError("%macro insufficient args; usage '%macro name n1-n2 n3-4...")
    try:
        value = Macro(find_user_code(" ".join(words[1:]), "r" in found))
    except (TypeError, ValueError) as error:
        raise UsageError(str(error.args[0])) from None
    STATE.ns[words[0]] = value
    if "q" not in found:
        print("Macro `%s` created. To execute, type its name (without quotes)." % words[0])
        print("=== Macro contents: ===")
        print(value, end=" ")
    return None


def rerun(shell, line):
    """%rerun [-l N] [-g TEXT] [range …]: run inputs again; without arguments the last one."""
    found, rest = options(line, (), ("l", "g"), "%rerun [-l N] [-g TEXT] [range …]")
    before = inputs()[:-1]
    if "l" in found:
        if not found["l"].isdigit() or not int(found["l"]):
            raise UsageError("Number of lines must be a positive integer")
        chosen = before[-int(found["l"]) :]
    elif "g" in found:
        chosen = [e for e in before if found["g"] in e[1] and "rerun" not in e[1]][-1:]
    else:
        chosen = select(rest) if rest else before[-1:]
    if not chosen:
        raise UsageError("No lines in history match specification")
    text = "\n".join(text for _, text in chosen)
    print("=== Executing: ===")
    print(text)
    print("=== Output: ===")
    result = shell.run_cell(text)
    result.raise_error()


def recall(shell, line):
    """%recall [range | text]: print inputs, to be copied into a cell."""
    text = line.strip()
    if text:
        found = text_of(text) or "\n".join([e[1] for e in inputs()[:-1] if text in e[1]][-1:])
    else:
        found = str(STATE.ns.get("_", ""))
    if not found:
        raise UsageError("No lines in history match specification")
    shell.set_next_input(found)


def notebook(shell, line):
    """%notebook: not available."""
    raise UsageError("%notebook is not available; `cellwright kernels export` writes a notebook")
