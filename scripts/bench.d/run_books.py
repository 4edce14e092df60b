"""The notebooks of the suite `run`, and checks of their outputs."""

import base64
import json
import random

import eval_cells as cells

FILLER_SEED = 6


def code(source, outputs=(), number=0):
    return {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": {},
            "outputs": list(outputs), "source": source.splitlines(keepends=True)}


def write(path, *all_cells):
    """Writes a notebook as Jupyter does."""
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": list(all_cells), "metadata": {"kernelspec": spec, "language_info": {"name": "python"}},
            "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


class Book:
    """A notebook to run. `check` takes the cells after the run and returns the first fault."""

    def __init__(self, title, name, make, check, light=False):
        self.title = title
        self.name = name
        self.make = make
        self.wrong = check
        self.light = light

    def write(self, path):
        write(path, *self.make())


def text_of(cell):
    """What a cell printed."""
    return "".join("".join(output["text"]) for output in cell["outputs"]
                   if output["output_type"] == "stream" and output["name"] == "stdout")


def same(what, found, expected):
    return None if found == expected else f"{what} is {found}, not {expected}"


# ---- Many cells ---------------------------------------------------------------------------------

def trivial(count):
    def make():
        return [code(f"print({number})", number=number) for number in range(count)]

    def wrong(found):
        bad = [number for number, cell in enumerate(found) if text_of(cell) != f"{number}\n"]
        if len(found) != count or bad:
            return f"{len(bad)} of {len(found)} cells did not print their number"
        counts = [cell["execution_count"] for cell in found]
        return same("the list of counts", counts == list(range(1, count + 1)), True)

    return Book(f"{count:,} trivial cell{'s' if count > 1 else ''}", f"trivial-{count}", make, wrong, light=True)


# ---- Much output --------------------------------------------------------------------------------

def one(title, name, source, wrong):
    return Book(title, name, lambda: [code(source)], lambda found: wrong(found[0]))


def lines(count):
    source = cells.LINES.replace("1_000_000", f"{count:_}")
    return one(f"{count / 10_000:g} MB of text in {count:,} lines", "lines", source,
               lambda cell: same("the number of characters", len(text_of(cell)), count * 100))


def flushes(count):
    source = cells.FLUSHES.replace("100_000", f"{count:_}")
    expected = sum(len(str(number)) + 1 for number in range(count))
    return one(f"{count:,} flushed prints", "flushes", source,
               lambda cell: same("the number of characters", len(text_of(cell)), expected))


def updates(count):
    source = (f"for number in range({count}):\n"
              f"    print(f'\\r{{number + 1:5}} of {count} done, some words more', end='', flush=True)\n"
              "print()\n")
    last = f"{count:5} of {count} done, some words more\n"

    def wrong(cell):
        # The final text of the line; most tools store all updates.
        return same("the last line", text_of(cell).rpartition("\r")[2], last)

    return one(f"{count:,} updates of one line", "updates", source, wrong)


def picture(megabytes):
    source = cells.PICTURE.replace("noise * 50", f"noise * {megabytes}")

    def wrong(cell):
        [output] = cell["outputs"]
        data = base64.b64decode("".join(output["data"]["image/png"]))
        return same("the size of the image", len(data), len(cells.PNG) + megabytes * 1_000_000)

    return one(f"An image of {megabytes} MB", "picture", source, wrong)


def full(megabytes):
    """One cell with small new outputs and large stored ones."""
    def make():
        rng = random.Random(FILLER_SEED)
        data = [base64.b64encode(rng.randbytes(750_000)).decode() for _ in range(megabytes)]
        outputs = [{"output_type": "display_data", "metadata": {}, "data": {"image/png": one, "text/plain": ["x"]}}
                   for one in data]
        return [code("print(1)", outputs)]

    return Book(f"{megabytes} MB of outputs from before", "full", make,
                lambda found: same("the text", text_of(found[0]), "1\n"), light=True)


def books(quick):
    if quick:
        return [trivial(1), trivial(10), trivial(30), lines(10_000), updates(200), picture(1), full(2),
                flushes(1000)]
    return [trivial(1), trivial(100), trivial(1000), lines(1_000_000), updates(20_000), picture(50), full(50),
            flushes(100_000)]
