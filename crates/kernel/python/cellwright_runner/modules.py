"""The user's own modules: files that are run in the namespace before the first cell."""

from .state import S


def run(path, code):
    """Run the text of a file in __main__, under its own name; its names count as the prelude's."""
    ns = S.ns
    if path not in S.modules:
        S.modules.append(path)
    before = dict(ns)
    ns["__file__"] = path
    try:
        exec(compile(code, path, "exec", 0, True), ns)
    finally:
        if "__file__" in before:
            ns["__file__"] = before["__file__"]
        else:
            ns.pop("__file__", None)
        for name in list(ns):
            if type(name) is str and (name not in before or ns[name] is not before[name]):
                if not (name.startswith("__") and name.endswith("__")):
                    S.kept[name] = ns[name]


def functions(path):
    """The public functions that a file defines and that are still there, in the file's order."""
    found = []
    for name, value in S.kept.items():
        code = getattr(value, "__code__", None)
        if name.startswith("_") or S.ns.get(name) is not value or code is None:
            continue
        if getattr(code, "co_filename", None) == path:
            found.append((code.co_firstlineno, name, value))
    return [(name, value) for _, name, value in sorted(found, key=lambda entry: entry[:2])]
