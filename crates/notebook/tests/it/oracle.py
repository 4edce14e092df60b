"""Checks the notebooks in a directory with nbformat, Python's notebook library.

Reads jobs.json there and prints one JSON document: for each job the results of nbformat for the
original and for each variant of it. oracle.rs evaluates the results.
"""

import json
import logging
import sys
import warnings
from pathlib import Path

import nbformat

# nbformat logs every invalid notebook that it reads; oracle.rs only needs the results.
logging.disable(logging.CRITICAL)


def read(path, as_version=nbformat.NO_CONVERT):
    text = Path(path).read_bytes().decode("utf-8-sig")
    return nbformat.reads(text, as_version=as_version)


def is_text(text):
    """Whether text has no lone surrogate, which a Rust string cannot hold."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def verdict(path, sources):
    """Whether a notebook is valid, the number of id warnings, and the sources that differ from `sources`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook = read(path)
    except Exception as error:
        return {"valid": False, "error": f"unreadable: {error!r:.300}", "ids": 0, "differing": []}
    cells = notebook.get("cells", [])
    found = [cell.get("source", "") for cell in cells]
    differing = [] if len(found) == len(sources) else [f"{len(found)} cells"]
    for index, (python, rust) in enumerate(zip(found, sources)):
        if is_text(python) and python != rust:
            differing.append(f"cell {index}: {python!r} is not {rust!r}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            nbformat.validate(notebook)
            error = None
        except Exception as invalid:
            error = f"{invalid!s:.300}"
    # nbformat repairs missing and duplicate ids and only warns.
    kinds = [warning.category.__name__ for warning in caught]
    ids = sum(kind in ("MissingIDFieldWarning", "DuplicateCellId") for kind in kinds)
    return {"valid": error is None, "error": error, "ids": ids, "differing": differing}


def content(notebook):
    """A notebook as text, without ids and without the members that a conversion adds."""
    # Within nbformat 4 Python converts nothing, not even the minor version.
    notebook.pop("nbformat_minor", None)
    for cell in notebook.cells:
        cell.pop("id", None)
        # nbformat drops it when it reads nbformat 4, but not when it converts to it.
        cell.metadata.pop("trusted", None)
    for name in ("orig_nbformat", "orig_nbformat_minor"):
        notebook.metadata.pop(name, None)
    return json.dumps(notebook, sort_keys=True, indent=1)


def conversion(original, upgraded):
    """How an upgrade differs from nbformat's conversion of the original; None if it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = content(read(original, 4)).splitlines()
        except Exception:
            return None
        ours = content(read(upgraded, 4)).splitlines()
    for line, (a, b) in enumerate(zip(theirs, ours)):
        if a != b:
            return f"line {line}: {a.strip():.200} became {b.strip():.200}"
    return None if len(theirs) == len(ours) else "one ends early"


def answer(job):
    result = {
        "name": job["name"],
        "before": verdict(job["original"], job["sources"]),
        "after": {
            name: verdict(variant["path"], variant["sources"])
            for name, variant in job["variants"].items()
        },
    }
    upgraded = job["variants"].get("upgrade")
    if upgraded:
        result["conversion"] = conversion(job["original"], upgraded["path"])
        result["version"] = list(nbformat.reader.get_version(read(upgraded["path"])))
    return result


def main():
    directory = Path(sys.argv[1])
    jobs = json.loads((directory / "jobs.json").read_text(encoding="utf-8"))
    json.dump([answer(job) for job in jobs], sys.stdout)


main()
