"""Completion of names, attributes, dict keys, modules, magics and files, without running the user's
code."""

import ast
import builtins
import importlib.machinery
import keyword
import os
import pkgutil
import re
import sys
import types

from . import lazy
from .inspection import resolve
from .state import STATE

_SAFE_LIBRARIES = ("numpy", "pandas", "polars", "builtins")
_DOTTED = re.compile(r"((?:[^\W\d]\w*|\]|\))(?:[\w.]|\[[^\[\]]*\])*)?\.(\w*)$")
_CHAIN = re.compile(r"([^\W\d]\w*(?:\.\w+|\[(?:-?\d+|'[^']*'|\"[^\"]*\")\])*)\.(\w*)$")
_KEY = re.compile(r"([^\W\d]\w*(?:\.\w+)*)\[\s*([\"']?)([^\"'\]\[]*)$")
_STRING = re.compile(r"([\"'])([^\"']*)$")
_WORD = re.compile(r"[^\W\d]\w*$")
MATCHES_LIMIT = 500


def complete(request):
    """Return the reply to `complete`."""
    code = request.get("code") or ""
    cursor = request.get("cursor")
    cursor = len(code) if cursor is None else min(max(int(cursor), 0), len(code))
    line = code[:cursor].rpartition("\n")[2]
    for attempt in (_magics, _imports, _keys, _attributes, _files, _names):
        found = attempt(line)
        if found is not None:
            matches, typed = found
            return {
                "matches": sorted(set(matches), key=_sort_key)[:MATCHES_LIMIT],
                "start": cursor - len(typed),
                "end": cursor,
            }
    return {"matches": [], "start": cursor, "end": cursor}


def _sort_key(name):
    return name.startswith("_"), name.startswith("__"), name.lower(), name


def attribute_names(obj):
    """Return the attribute names of an object; a __dir__ of the user is not called."""
    kind = type(obj)
    try:
        if isinstance(obj, types.ModuleType):
            return {n for n in dir(obj) if type(n) is str}
        own = kind.__dir__
        is_safe = (kind.__module__ or "").partition(".")[0] in _SAFE_LIBRARIES
        if is_safe or own is object.__dir__ or own is type.__dir__:
            if not is_safe and "__getattribute__" in _class_attributes(kind):
                raise TypeError
            return {n for n in dir(obj) if type(n) is str}
    except Exception:
        pass
    names = set()
    for base in kind.__mro__:
        names.update(base.__dict__)
    try:
        names.update(object.__getattribute__(obj, "__dict__"))
    except Exception:
        pass
    return {n for n in names if type(n) is str}


def _class_attributes(kind):
    names = set()
    for base in kind.__mro__:
        if base is not object and base is not type:
            names.update(base.__dict__)
    return names


def _matching(names, typed):
    matches = [n for n in names if n.startswith(typed)]
    if not typed.startswith("_"):
        public = [n for n in matches if not n.startswith("_")]
        return public or matches
    return matches


def _magics(line):
    match = re.match(r"\s*(%%?)(\w*)$", line)
    if match is None:
        return None
    magics = lazy.load("magics").list_magics(STATE.shell or lazy.load("ipython_shell").make())
    sign, typed = match.groups()
    names = ["%%" + n for n in magics["cell"] if n[0].isalpha()]
    if sign == "%":
        names += ["%" + n for n in magics["line"]]
    return [n for n in names if n.lstrip("%").startswith(typed)], sign + typed


def _imports(line):
    match = re.match(r"\s*from\s+([\w.]+)\s+import\s+(?:\(?[\w\s,]*,\s*|\(?\s*)(\w*)$", line)
    if match:
        module, typed = match.groups()
        names = set(_submodules(module))
        loaded = sys.modules.get(module)
        if loaded is not None:
            names |= attribute_names(loaded)
        else:
            names |= _static_names(module)
        return _matching(names, typed), typed
    match = re.match(r"\s*(?:import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*|from\s+)([\w.]*)$", line)
    if match is None:
        return None
    typed = match.group(1)
    head, dot, tail = typed.rpartition(".")
    if dot:
        names = set(_submodules(head))
        if head in sys.modules:
            names |= {
                n for n, v in sys.modules[head].__dict__.items() if isinstance(v, types.ModuleType)
            }
        return [head + "." + n for n in _matching(names, tail)], typed
    return _matching(_top_modules(), tail), typed


def _top_modules():
    names = set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ()))
    for path in sys.path:
        try:
            names.update(m.name for m in pkgutil.iter_modules([path or os.getcwd()]))
        except Exception:
            continue
    return names


def _package_path(module):
    """Return the directories of a package without importing it."""
    if module in sys.modules:
        return list(getattr(sys.modules[module], "__path__", ()))
    path = [p or os.getcwd() for p in sys.path]
    for part in module.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, path)
        if spec is None:
            return []
        path = list(spec.submodule_search_locations or ())
    return path


def _submodules(module):
    try:
        return [m.name for m in pkgutil.iter_modules(_package_path(module))]
    except Exception:
        return []


def _static_names(module):
    """Return the top-level names in a module's source, without importing it."""
    head, _, tail = module.rpartition(".")
    path = _package_path(head) if head else [p or os.getcwd() for p in sys.path]
    try:
        spec = importlib.machinery.PathFinder.find_spec(tail, path)
        if not spec or not spec.origin or not spec.origin.endswith(".py"):
            return set()
        with open(spec.origin, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except Exception:
        return set()
    names = set()
    for node in tree.body:
        if hasattr(node, "name"):
            names.add(node.name)
        for target in getattr(node, "targets", ()):
            names.update(n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        for alias in getattr(node, "names", ()):
            names.add(
                getattr(alias, "asname", None) or getattr(alias, "name", "").partition(".")[0]
            )
    return {n for n in names if type(n) is str and n.isidentifier()}


def _keys(line):
    match = _KEY.search(line)
    if match is None:
        return None
    found = resolve(match.group(1))
    if found is None:
        return None
    obj, quote, typed = found[0], match.group(2), match.group(3)
    kind = type(obj)
    if kind is dict:
        keys = [k for k in list(obj)[:5000] if type(k) in (str, int)]
    elif kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in ("pandas", "polars"):
        keys = [k for k in list(obj.columns)[:5000] if type(k) in (str, int)]
    else:
        return None
    if quote:
        texts = [k for k in keys if type(k) is str and k.startswith(typed)]
        return [_quoted(k, quote) for k in texts], quote + typed
    return [repr(k) for k in keys if repr(k).startswith(typed)], typed


def _quoted(key, quote):
    body = repr(key)[1:-1].replace("\\'", "'")
    return quote + body.replace(quote, "\\" + quote) + quote


def _attributes(line):
    match = _CHAIN.search(line)
    if match is None:
        return ([], "") if _DOTTED.search(line) and not re.search(r"\d\.\w*$", line) else None
    if _inside_string(line):
        return None
    found = resolve(match.group(1))
    if found is None or isinstance(found[0], property):
        return [], match.group(2)
    return _matching(attribute_names(found[0]), match.group(2)), match.group(2)


def _inside_string(line):
    from .scanner import logical_line

    tokens = logical_line(line, 0).tokens
    if not tokens:
        return False
    kind, text, at = tokens[-1]
    if kind == "comment":
        return True
    quote = text.lstrip("rRbBuUfFtT")[:1]
    return (
        kind == "string"
        and at + len(text) == len(line)
        and not (len(text) > 1 and text.endswith(quote) and text.rstrip(quote) != "")
    )


def _files(line):
    match = _STRING.search(line)
    if match is None or not _inside_string(line):
        match = re.search(
            r"(?:^\s*(?:!|%cd |%run |%load |%%writefile |%ls |%cat ).*?|\s)([\w./~-]*)$", line
        )
        if match is None or line.lstrip()[:1] not in ("!", "%"):
            return None
        typed = match.group(1)
    else:
        typed = match.group(2)
    directory, name = os.path.split(typed)
    try:
        entries = os.listdir(os.path.expanduser(directory) or ".")
    except OSError:
        return [], typed
    matches = []
    for entry in sorted(entries):
        if entry.startswith(name) and (name.startswith(".") or not entry.startswith(".")):
            full = os.path.join(directory, entry)
            matches.append(full + "/" if os.path.isdir(os.path.expanduser(full)) else full)
    return matches[:MATCHES_LIMIT], typed


def _names(line):
    match = _WORD.search(line)
    typed = match.group() if match else ""
    if not typed and re.search(r"\d$", line):
        return [], ""
    names = set(keyword.kwlist)
    names.update(n for n in STATE.ns if type(n) is str)
    names.update(dir(builtins))
    matches = _matching(names, typed)
    return matches + [p for p in _parameters(line) if p.startswith(typed)], typed


def _parameters(line):
    """Return `name=` for the parameters of the call around the cursor."""
    match = re.search(r"([^\W\d][\w.]*)\((?:[^()]*,\s*)?\w*$", line)
    found = resolve(match.group(1)) if match else None
    code = getattr(found[0], "__code__", None) if found else None
    if not isinstance(code, types.CodeType):
        return []
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    skip = 1 if isinstance(found[0], types.MethodType) else 0
    return [n + "=" for n in names[skip:]]
