"""Compares the outputs of two runs of one notebook, without the parts that differ between any two runs.

Does not use the comparison of Cellwright, because it checks that.
"""

import html
import json
import re

# Kinds of differences that change text for the user.
TEXT = ("stdout", "text", "error", "missing", "count")
# Kinds of differences that change what a page shows.
RICH = ("rich", "image", "metadata")

NOISE = [(re.compile(pattern), instead) for pattern, instead in [
    (r"0x[0-9a-fA-F]{6,16}\b", "<address>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\bT_[0-9a-f]{5}", "<style>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"\bsk-(?:container|estimator)-id-\d+", "<id>"),
    (r"\S*[/\\]ipykernel_\d+[/\\]\d+\.py", "<cell>"),
    (r"<ipython-input-\d+-[0-9a-f]+>", "<cell>"),
    (r"\(\d+\.py, line ", "(<cell>, line "),
    (r"\bCell In\s?\[\d+\]", "<cell>"),
    (r"(?:/var)?/tmp/[^\s\"'/,:;)>]+", "<temporary>"),
    (r"(?m)^(CPU times|Wall time|Compiler time)\b.*$", r"\1"),
    (r"(?m)^The slowest run took .*\n?", ""),
    (r"(?m)^.* per loop.*$", "<timeit>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?", "<date>"),
    (r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{3,8} +.{2,3} .*?\d\d:\d\d:\d\d(?: [A-Z]+)?(?: \d{4})?", "<date>"),
    (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    # The format of `ls -l`.
    (r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} +\d\d:\d\d\b", "<date>"),
    (r"\[\d+:\d\d(?::\d\d)?<[^\]]*\]", "<rate>"),
    (r"\d+(?:\.\d+)? ?(?:it|[kKMG]?i?B)/s\b", "<rate>"),
    (r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:ns|us|µs|μs|ms|s|sec|secs|seconds?|min|minutes?)\b", "<time>"),
]]

SEQUENCE = re.compile(r"\x1b\[([0-9;:?]*)([@-~])|\x1b[@-Z\\-_]")


def plain(text):
    """The text that a terminal shows in the end, without colours."""
    if not any(mark in text for mark in "\r\b\x1b"):
        return text
    lines, row, column = [[]], 0, 0
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\x1b" and (found := SEQUENCE.match(text, at)):
            at = found.end()
            count = int(found[1]) if (found[1] or "").isdigit() else 1
            line = lines[row]
            match found[2]:
                case "A":
                    row = max(0, row - count)
                case "B":
                    row = min(len(lines) - 1, row + count)
                case "C":
                    column += count
                case "D":
                    column = max(0, column - count)
                case "G":
                    column = count - 1
                case "K" if found[1] in ("", "0"):
                    del line[column:]
                case "K":
                    line[:] = []
                case "J" if found[1] in ("", "0"):
                    del line[column:]
                    del lines[row + 1:]
            continue
        at += 1
        if character == "\n":
            row, column = row + 1, 0
            if row == len(lines):
                lines.append([])
        elif character == "\r":
            column = 0
        elif character == "\b":
            column = max(0, column - 1)
        else:
            line = lines[row]
            line.extend(" " * (column - len(line)))
            line[column:column + 1] = [character]
            column += 1
    return "\n".join("".join(line) for line in lines)


def normalized(text):
    """The text without parts that differ between any two runs."""
    text = plain(text)
    for pattern, instead in NOISE:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


def joined(value):
    return "".join(value) if isinstance(value, list) else value


def grouped(outputs):
    """Outputs with the streams between two others joined, one for each name, in a fixed order."""
    found, streams = [], {}

    def flush():
        for name in sorted(streams):
            if normalized(streams[name]):
                found.append({"output_type": "stream", "name": name, "text": streams[name]})
        streams.clear()

    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + joined(output["text"])
        else:
            flush()
            found.append(output)
    flush()
    return found


def without_ids(value):
    """A reference to a widget without its id."""
    return {key: item for key, item in value.items() if key != "model_id"} if isinstance(value, dict) else value


def short(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"


def first_difference(theirs, ours):
    """The first lines that differ."""
    their_lines, our_lines = theirs.split("\n"), ours.split("\n")
    for number, (one, other) in enumerate(zip(their_lines, our_lines)):
        if one != other:
            return {"line": number + 1, "theirs": short(one), "ours": short(other)}
    number = min(len(their_lines), len(our_lines))
    return {"line": number + 1, "theirs": short("\n".join(their_lines[number:number + 1])),
            "ours": short("\n".join(our_lines[number:number + 1]))}


def output_name(output):
    if output["output_type"] == "stream":
        return output["name"]
    return output["output_type"] + (" " + ", ".join(sorted(output["data"])) if "data" in output else "")


def kind_of(output):
    return "stderr" if output.get("name") == "stderr" else "missing"


def bundle_differences(theirs, ours):
    for mime in sorted(theirs | ours):
        if mime not in theirs or mime not in ours:
            kind = "text" if mime == "text/plain" else "rich"
            yield {"kind": kind, "what": mime, "theirs": mime in theirs, "ours": mime in ours}
            continue
        one, other = joined(theirs[mime]), joined(ours[mime])
        if isinstance(one, str) and isinstance(other, str) and not mime.startswith("image/"):
            one, other = normalized(one), normalized(other)
        elif mime.startswith("image/"):
            one, other = "".join(one.split()), "".join(other.split())
        else:
            one, other = without_ids(one), without_ids(other)
        if one != other:
            kind = "text" if mime == "text/plain" else "image" if mime.startswith("image/") else "rich"
            lines = first_difference(one, other) if isinstance(one, str) and kind != "image" else {}
            yield {"kind": kind, "what": mime, **lines}


def output_differences(theirs, ours):
    kind = theirs["output_type"]
    if kind == "stream":
        one, other = normalized(theirs["text"]), normalized(ours["text"])
        if one != other:
            yield {"kind": theirs["name"], "what": theirs["name"], **first_difference(one, other)}
    elif kind == "error":
        for field in ("ename", "evalue"):
            one, other = normalized(theirs[field]), normalized(ours[field])
            if one != other:
                yield {"kind": "error", "what": field, "theirs": short(one), "ours": short(other)}
        one, other = (normalized("\n".join(output["traceback"])) for output in (theirs, ours))
        if one != other:
            yield {"kind": "traceback", "what": "traceback", **first_difference(one, other)}
    else:
        if theirs.get("execution_count") != ours.get("execution_count"):
            yield {"kind": "count", "what": "execution_count of the result",
                   "theirs": theirs.get("execution_count"), "ours": ours.get("execution_count")}
        yield from bundle_differences(theirs["data"], ours["data"])
        if theirs.get("metadata", {}) != ours.get("metadata", {}):
            yield {"kind": "metadata", "what": "metadata", "theirs": short(theirs.get("metadata")),
                   "ours": short(ours.get("metadata"))}


def pairs(theirs, ours):
    """Pairs of outputs with the same name, in order."""
    position = 0
    for output in theirs:
        rest = [number for number in range(position, len(ours)) if output_name(ours[number]) == output_name(output)]
        rest = rest or [number for number in range(position, len(ours))
                        if ours[number]["output_type"] == output["output_type"] != "stream"]
        if rest:
            for number in range(position, rest[0]):
                yield None, ours[number]
            yield output, ours[rest[0]]
            position = rest[0] + 1
        else:
            yield output, None
    for output in ours[position:]:
        yield None, output


def cell_differences(theirs, ours):
    if theirs.get("execution_count") != ours.get("execution_count"):
        yield {"kind": "count", "what": "execution_count of the cell",
               "theirs": theirs.get("execution_count"), "ours": ours.get("execution_count")}
    for one, other in pairs(grouped(theirs["outputs"]), grouped(ours["outputs"])):
        if one is None or other is None:
            there = one or other
            shown = there.get("text") or there.get("data", {}).get("text/plain") or there.get("evalue") or ""
            yield {"kind": kind_of(there), "what": output_name(there) + (" is missing" if one else " is more"),
                   "text": short(joined(shown))}
        else:
            yield from output_differences(one, other)


def widget_models(book):
    """The stored models of widgets, without their ids."""
    widgets = book["metadata"].get("widgets")
    if widgets is None:
        return None
    stored = widgets["application/vnd.jupyter.widget-state+json"]
    models = [html.unescape(json.dumps(model, sort_keys=True, ensure_ascii=False)) for model in stored["state"].values()]
    models = sorted(normalized(re.sub("[0-9a-f]{32}", "<id>", model)) for model in models)
    return {"version": (stored["version_major"], stored["version_minor"]), "models": models}


def widget_differences(theirs, ours):
    one, other = widget_models(theirs), widget_models(ours)
    if one == other:
        return
    if one is None or other is None or len(one["models"]) != len(other["models"]):
        sizes = [models and len(models["models"]) for models in (one, other)]
        yield {"cell": None, "kind": "widgets", "what": "number of models", "theirs": sizes[0], "ours": sizes[1]}
        return
    for their_model, our_model in zip(one["models"], other["models"]):
        if their_model != our_model:
            yield {"cell": None, "kind": "widgets", "what": "model", "theirs": their_model, "ours": our_model}


def differences(theirs, ours):
    """The differences between two executed notebooks, cell by cell."""
    found = list(widget_differences(theirs, ours))
    if len(theirs["cells"]) != len(ours["cells"]):
        return [{"cell": None, "kind": "missing", "what": "cells",
                 "theirs": len(theirs["cells"]), "ours": len(ours["cells"])}]
    for number, (one, other) in enumerate(zip(theirs["cells"], ours["cells"])):
        if one["cell_type"] != other["cell_type"] or joined(one["source"]) != joined(other["source"]):
            found.append({"cell": number, "kind": "missing", "what": "source"})
        elif one["cell_type"] == "code":
            found += [{"cell": number, **difference} for difference in cell_differences(one, other)]
    return found
