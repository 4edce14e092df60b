"""Makes the notebooks that are measured. The same ones every time: the seed is fixed."""

import base64
import json
import random

WORDS = (
    "data frame model value mean error train test plot axis column index label score batch layer "
    "Größe naïve 数据 weight sample filter group merge time series rate noise signal λ"
).split()


def write_large(path, megabytes):
    """A notebook like those of a data analysis: mostly images, tables and logs."""
    rng = random.Random(megabytes)
    wanted = megabytes * 1_000_000

    def cells():
        size = 0
        index = 0
        while size < wanted:
            cell = large_cell(rng, index)
            text = json.dumps(cell, indent=1, sort_keys=True, ensure_ascii=False)
            size += len(text.encode())
            index += 1
            yield text

    return write(path, cells())


def write_many(path, count):
    """A notebook of many cells with next to nothing in them."""
    def cells():
        for index in range(count):
            cell = {
                "cell_type": "code",
                "execution_count": None,
                "id": f"c{index:07}",
                "metadata": {},
                "outputs": [],
                "source": [f"x_{index} = {index}"],
            }
            yield json.dumps(cell, indent=1, sort_keys=True)

    return write(path, cells())


def write(path, cells):
    """Writes the file as Jupyter lays it out, cell by cell. Returns the number of cells."""
    count = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write('{\n "cells": [')
        for cell in cells:
            file.write(",\n" if count else "\n")
            file.write("  " + cell.replace("\n", "\n  "))
            count += 1
        file.write(
            '\n ],\n "metadata": {\n  "kernelspec": {\n   "display_name": "Python 3",\n'
            '   "language": "python",\n   "name": "python3"\n  },\n'
            '  "language_info": {\n   "name": "python"\n  }\n },\n'
            ' "nbformat": 4,\n "nbformat_minor": 5\n}\n'
        )
    return count


def large_cell(rng, index):
    if index % 4 == 3:
        lines = [f"## Step {index}", ""] + [sentence(rng) for _ in range(rng.randrange(2, 8))]
        return {
            "cell_type": "markdown",
            "id": f"m{index:07}",
            "metadata": {},
            "source": as_lines(lines),
        }
    lines = [f"# Step {index}"] + [code_line(rng) for _ in range(rng.randrange(3, 25))]
    kinds = [image, image, table, log]
    outputs = [rng.choice(kinds)(rng, index) for _ in range(rng.randrange(1, 3))]
    return {
        "cell_type": "code",
        "execution_count": index + 1,
        "id": f"c{index:07}",
        "metadata": {},
        "outputs": outputs,
        "source": as_lines(lines),
    }


def image(rng, index):
    # Random bytes, because compressed images look like that.
    data = base64.b64encode(rng.randbytes(rng.randrange(5_000, 60_000))).decode()
    return {
        "data": {"image/png": data + "\n", "text/plain": ["<Figure size 640x480 with 1 Axes>"]},
        "metadata": {},
        "output_type": "display_data",
    }


def table(rng, index):
    rows = [
        "  <tr>" + "".join(f"<td>{rng.random():.6f}</td>" for _ in range(8)) + "</tr>"
        for _ in range(rng.randrange(20, 400))
    ]
    return {
        "data": {
            "text/html": as_lines(["<div>", "<table border=\"1\">"] + rows + ["</table>", "</div>"]),
            "text/plain": as_lines([sentence(rng) for _ in range(20)]),
        },
        "execution_count": index + 1,
        "metadata": {},
        "output_type": "execute_result",
    }


def log(rng, index):
    lines = [f"\x1b[32mstep {n}\x1b[0m {sentence(rng)}" for n in range(rng.randrange(20, 600))]
    return {"name": "stdout", "output_type": "stream", "text": as_lines(lines + [""])}


def code_line(rng):
    return f"{rng.choice(WORDS)}_{rng.randrange(100)} = np.{rng.choice(WORDS)}(df[\"{rng.choice(WORDS)}\"])"


def sentence(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(4, 14)))


def as_lines(lines):
    """Lines as nbformat keeps them: each with its newline but the last."""
    ended = [line + "\n" for line in lines[:-1]] + lines[-1:]
    return [line for line in ended if line]
