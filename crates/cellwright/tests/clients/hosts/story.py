"""The scripted story: a model works on two notebooks with the tools of the server."""

import re

from conftest import PNG
from model import Step

PROMPT = "Repair a.ipynb."
LINES = 100_000
# Time limit of the host for a tool call, in seconds. Only one call of the story takes longer.
CALL_TIMEOUT = 10


def create_notebooks(project):
    """Creates the notebooks of the story. Both have the same file name."""
    project.notebook("a.ipynb", "prices = [3, 1, 2]", PNG.strip(), "total = sum(price)\nprint('total', total)")
    (project.directory / "sub").mkdir()
    project.notebook("sub/a.ipynb", "place = 'sub' + 'directory'", "print('place', place)")


def find(pattern, result):
    """The text of the first group of `pattern` in a tool result."""
    found = re.search(pattern, result.text)
    if not found:
        raise LookupError(f"no `{pattern}` in: {result.text}")
    return found[1]


def revision(results):
    return find(r"revision\W+(\w+)", results["read"])


def artifact(results):
    return find(r"(artifact://\w+)", results["many_lines"])


STEPS = [
    Step("read", "read", {"path": "a.ipynb"}),
    Step("ambiguous_edit", "edit", {"path": "a.ipynb", "old": "price", "new": "cost"}),
    Step(
        "edit",
        "edit",
        lambda results: {"path": "a.ipynb", "old": "[3, 1, 2]", "new": "[3, 1, 2, 4]", "rev": revision(results)},
    ),
    Step(
        "insert",
        "notebook",
        {"action": "insert", "path": "a.ipynb", "after": "2", "source": "print('done', total + 1)"},
    ),
    Step("failing_run", "run", {"path": "a.ipynb"}),
    Step("fix", "edit", {"path": "a.ipynb", "old": "sum(price)", "new": "sum(prices)"}),
    Step("run", "run", {"path": "a.ipynb"}),
    Step("set_variable", "eval", {"code": "x = 40"}),
    Step("get_variable", "eval", {"code": "x + 2"}),
    Step("many_lines", "eval", {"code": f"for i in range({LINES}): print('line', i)"}),
    Step("range", "read", lambda results: {"path": f"{artifact(results)}:50001-50003"}),
    Step("search", "artifact", lambda results: {"action": "search", "id": artifact(results), "grep": "line 77777"}),
    Step(
        "long_eval",
        "eval",
        {"wait": 1, "code": "import time\nprint('started')\ntime.sleep(4)\nprint('fini' + 'shed')"},
    ),
    Step(
        "wait",
        "runs",
        lambda results: {"action": "wait", "run": find(r"\b(r\d+)\b", results["long_eval"])},
    ),
    Step("second_run", "run", {"path": "sub/a.ipynb"}),
    Step("second_variable", "eval", {"code": "place[3:]", "session": "sub/a.ipynb"}),
    Step("first_variable", "eval", {"code": "total * 2", "session": "a.ipynb"}),
]

# The steps of a host that ends a call at its time limit.
TIMEOUT_STEPS = [
    Step("timed_out_call", "eval", {"code": "kept = 6\nimport time\ntime.sleep(600)", "timeout": 0, "wait": 300}),
    Step("kept_variable", "eval", {"code": "kept + x"}),
]
