"""inspect: signature, docstring, type and source of a name, found without running properties."""

import ast
import builtins
import inspect as standard
import re
import types

from .state import STATE

_NAME = re.compile(r"[\w.]+")
_STEP = re.compile(r"\s*(?:\.\s*(\w+)|\[\s*(-?\d+|'[^']*'|\"[^\"]*\")\s*\])")
_CALLABLE_WRAPPERS = (staticmethod, classmethod)


def static_attribute(obj, name):
    """Return an attribute without running the object's code; AttributeError if that is
    impossible."""
    if isinstance(obj, types.ModuleType):
        found = obj.__dict__.get(name, obj)
        if found is not obj:
            return found
        raise AttributeError(name)
    found = standard.getattr_static(obj, name)
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return found.__func__.__get__(obj if isinstance(obj, type) else type(obj))
    if isinstance(found, types.FunctionType):
        return found if isinstance(obj, type) else found.__get__(obj)
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return found if isinstance(obj, type) else found.__get__(obj)
    if isinstance(found, types.MemberDescriptorType) and not isinstance(obj, type):
        return found.__get__(obj)
    return found


def resolve(text):
    """Return (object,) for a dotted name like `a.b[0].c`, or None."""
    match = re.match(r"\s*([^\W\d]\w*)", text)
    if match is None:
        return None
    name = match.group(1)
    if name in STATE.ns:
        obj = STATE.ns[name]
    elif hasattr(builtins, name):
        obj = getattr(builtins, name)
    else:
        return None
    at = match.end()
    text = text.rstrip()
    try:
        while at < len(text):
            match = _STEP.match(text, at)
            if match is None:
                return None
            if match.group(1):
                if isinstance(obj, property):
                    return None
                obj = static_attribute(obj, match.group(1))
            else:
                if type(obj) not in (list, tuple, dict):
                    return None
                key = match.group(2)
                obj = obj[key[1:-1] if key[0] in "\"'" else int(key)]
            at = match.end()
    except Exception:
        return None
    return (obj,)


def name_at(code, cursor):
    """Return the dotted name at or before the cursor; inside a call's brackets, the function's."""
    start = cursor
    while start > 0 and (code[start - 1].isalnum() or code[start - 1] in "_."):
        start -= 1
    end = cursor
    while end < len(code) and (code[end].isalnum() or code[end] == "_"):
        end += 1
    name = code[start:end].strip(".")
    if name and not name[0].isdigit():
        return name
    depth = 0
    for at in range(cursor - 1, -1, -1):
        if code[at] == ")":
            depth += 1
        elif code[at] == "(":
            if depth == 0:
                found = re.search(r"[\w.]+\s*$", code[:at])
                return found.group().strip() if found else ""
            depth -= 1
    return ""


def inspect(request):
    """Return the reply to `inspect`."""
    code, cursor = request.get("code") or "", int(request.get("cursor") or 0)
    name = name_at(code, min(max(cursor, 0), len(code)))
    found = describe(name, int(request.get("detail") or 0)) if name else None
    if found is None:
        return {"found": False, "data": {}, "name": name}
    text = found.pop("text")
    found.update(found=True, name=name, data={"text/plain": text})
    return found


def describe(name, detail):
    """Return facts about a name as a dict with `text`, or None."""
    found = resolve(name)
    if found is None:
        return None
    obj = found[0]
    kind = type(obj)
    facts = {
        "signature": signature(name, obj),
        "docstring": docstring(obj),
        "type": kind.__qualname__,
        "module": getattr(obj, "__module__", None) if has_signature(obj) else kind.__module__,
        "file": file_of(obj),
        "source": source(obj) if detail else None,
    }
    if type(facts["module"]) is not str:
        facts["module"] = None
    parts = []
    if facts["signature"]:
        parts.append("Signature: %s" % facts["signature"])
    parts.append("Type: %s" % facts["type"])
    if not has_signature(obj) and not isinstance(obj, types.ModuleType):
        from .variables import facts as variable_facts

        entry = variable_facts(name, obj)
        if entry["preview"] is not None:
            parts.append("Value: %s" % entry["preview"])
        if entry["length"] is not None:
            parts.append("Length: %d" % entry["length"])
    if facts["file"]:
        parts.append("File: %s" % facts["file"])
    if facts["source"]:
        parts.append("Source:\n%s" % facts["source"].rstrip())
    elif facts["docstring"]:
        parts.append("Docstring:\n%s" % facts["docstring"])
    else:
        parts.append("Docstring: <no docstring>")
    facts["text"] = "\n".join(parts)
    return facts


def has_signature(obj):
    """Return whether an object is a function, method or class, which have a signature."""
    return isinstance(obj, type) or standard.isroutine(obj)


def signature(name, obj):
    """Return `name(arguments)`, or None."""
    if not has_signature(obj):
        return None
    try:
        return "%s%s" % (name.rpartition(".")[2], standard.signature(obj))
    except (ValueError, TypeError):
        return None
    except Exception:
        return None


def docstring(obj):
    """Return the cleaned docstring, or None; a property named __doc__ is not run."""
    try:
        if has_signature(obj) or isinstance(obj, types.ModuleType):
            text = standard.getdoc(obj)
        else:
            text = type(obj).__dict__.get("__doc__")
        return standard.cleandoc(text) if type(text) is str else None
    except Exception:
        return None


def source(obj):
    """Return the source text, or None."""
    if not has_signature(obj) and not isinstance(obj, types.ModuleType):
        return None
    try:
        while isinstance(getattr(obj, "__wrapped__", None), types.FunctionType):
            obj = obj.__wrapped__
        return standard.getsource(obj)
    except Exception:
        return _class_source(obj)


def _class_source(obj):
    """Return the source of a class defined in a cell. Before 3.13 `inspect` cannot find it; the
    file names of its functions name the cell."""
    if not isinstance(obj, type):
        return None
    for value in obj.__dict__.values():
        code = getattr(value, "__code__", None)
        text = STATE.cell_sources.get(code.co_filename) if code is not None else None
        if text is None:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name == obj.__name__:
                return ast.get_source_segment(text, node)
    return None


def file_of(obj):
    """Return the file that defines an object; for cells, the cell's name."""
    try:
        if has_signature(obj) or isinstance(obj, types.ModuleType):
            return standard.getfile(obj)
    except Exception:
        pass
    return None
