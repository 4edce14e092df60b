"""The user's modules: files that run in the namespace before the first cell."""

from .state import STATE


def run(path, code):
    """Run the text of a file in __main__ under the file's name; its names join the prelude's."""
    ns = STATE.ns
    if path not in STATE.module_paths:
        STATE.module_paths.append(path)
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
                    STATE.prelude_names[name] = ns[name]


def functions(path):
    """Return the public functions that a file defined and that still exist, in file order."""
    found = []
    for name, value in STATE.prelude_names.items():
        code = getattr(value, "__code__", None)
        if name.startswith("_") or STATE.ns.get(name) is not value or code is None:
            continue
        if getattr(code, "co_filename", None) == path:
            found.append((code.co_firstlineno, name, value))
    return [(name, value) for _, name, value in sorted(found, key=lambda entry: entry[:2])]
