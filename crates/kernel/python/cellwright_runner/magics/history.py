"""%history, and the ranges of inputs that it shares with %save, %macro, %rerun and %load."""

import fnmatch
import os
import re
import sys

from ..cell import HISTORY
from . import UsageError, split

_RANGE = re.compile(r"(?:(~?\d+)?(/))?(\d+)?(?:-(\d+)?)?$")
_USAGE = "%history [-n] [-o] [-p] [-t] [-u] [-y] [-f FILE] [-g PATTERN] [-l [N]] [range …]"


def inputs(raw=True):
    """Return [(number, text)] of the cells so far, with `raw` untransformed."""
    if raw:
        entries = HISTORY.raw_inputs.items()
    else:
        entries = enumerate(HISTORY.inputs)
    return [(number, text.rstrip("\n")) for number, text in entries if number and text]


def select(text, raw=True):
    """Return the inputs of ranges such as `2 4-6 8-`. Words that are no range are skipped; without
    any text the result has all inputs."""
    entries = inputs(raw)
    if not text.strip():
        return entries
    found = []
    for word in text.replace(",", " ").split():
        match = _RANGE.match(word)
        if match is None or not word.strip("-/"):
            continue
        session, slash, first, last = match.groups()
        if session not in (None, "~0", "0"):
            raise UsageError("%s is in another session; only the inputs of this one are kept" % word)
        start = int(first or 1)
        if "-" in word or slash and first is None:
            end = int(last) if last else float("inf")
        else:
            end = start
        found += [(number, line) for number, line in entries if start <= number <= end]
    return found


def text_of(ranges, raw=True):
    """Return the inputs of ranges as one text. Without ranges the calling cell is left out."""
    entries = [text for _, text in select(ranges, raw)]
    if not ranges.strip():
        entries = entries[:-1]
    return "\n".join(entries)


def _parse(line):
    """Return (options, words that are no options)."""
    found, rest, words = {}, [], split(line)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word[1:2].isdigit() or word == "-":
            rest.append(word)
            continue
        letters = word.lstrip("-")
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in "noptury":
                found[letter] = True
            elif letter == "f":
                if not letters and not words:
                    raise UsageError("option -f requires a file name; " + _USAGE)
                found["f"], letters = letters or words.pop(0), ""
            elif letter == "l":
                number = letters or (words.pop(0) if words and words[0].isdigit() else "10")
                if not number.isdigit():
                    raise UsageError("option -l requires a number, not %r" % number)
                found["l"], letters = int(number), ""
            elif letter == "g":
                found["g"], letters = ([letters] if letters else []) + words, ""
                words = []
            else:
                raise UsageError("option -%s not recognized; %s" % (letter, _USAGE))
    return found, rest


def history(shell, line):
    """%history [-n] [-o] [-p] [-t] [-u] [-f FILE] [-g PATTERN] [-l [N]] [range …]: inputs of this
    session; with -t the transformed ones, with -o their values, with -f into a file."""
    found, ranges = _parse(line)
    raw = "t" not in found
    if "l" in found:
        entries = inputs(raw)[:-1][-found["l"] :]
    else:
        for word in ranges:
            if _RANGE.match(word) is None:
                raise UsageError("%%history accepts numbers and ranges like 2-5, not %r" % word)
        entries = select(" ".join(ranges), raw)
    if "g" in found:
        pattern = "*%s*" % " ".join(found["g"])
        entries = [(number, text) for number, text in entries if fnmatch.fnmatch(text, pattern)]
    if "u" in found:
        newest = {text: index for index, (_, text) in enumerate(entries)}
        entries = [entry for index, entry in enumerate(entries) if newest[entry[1]] == index]
    if "f" not in found:
        _write(entries, found, sys.stdout)
        return
    path = os.path.expanduser(found["f"])
    if os.path.exists(path) and "y" not in found:
        print("Overwriting file.")
    with open(path, "w", encoding="utf-8") as file:
        _write(entries, found, file)


def _write(entries, found, file):
    for number, text in entries:
        text = text.expandtabs(4).rstrip()
        several = "\n" in text
        if "n" in found or "g" in found:
            file.write("%4d:%s" % (number, "\n" if several else " "))
        if "p" in found:
            text = ">>> " + ("\n... ".join(text.splitlines()) + "\n..." if several else text)
        file.write(text + "\n")
        if "o" in found and HISTORY.output_texts.get(number):
            file.write(HISTORY.output_texts[number] + "\n")
