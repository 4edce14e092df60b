"""Real MCP hosts with a scripted model: what reaches the model from each reply of the server."""

import base64
import dataclasses
import json
import re
import time

import psutil
import pytest
from mcp_hosts import MCP_HOSTS
from model import FINAL_MESSAGE, ScriptedModel
from story import LINES, PROMPT, STEPS, TIMEOUT_STEPS, create_notebooks

RESULT_LIMIT = 12_000
PROCESS_END_TIMEOUT = 10


@dataclasses.dataclass(frozen=True)
class Expected:
    """The expected text of a tool result. All patterns are regular expressions; `^` and `$` match at lines."""

    # The text begins with this pattern.
    start: str = ""
    # Each of these patterns occurs exactly once.
    once: tuple[str, ...] = ()
    # None of these patterns occurs.
    never: tuple[str, ...] = ()
    # Number of images.
    images: int = 0
    # Number of texts between `<output N>` and `</output N>`, if it is fixed.
    outputs: int | None = None


OK = r"ok\b"
REVISION = r"revision\W+[0-9a-f]{6,}"
IMAGE = r"\[figure 60×40, artifact://\w+, image 1\]"
TRUNCATION = r"^\[… (\d+) lines \([\d.]+ \w+\) elided …\]"

# The expected result of each step of the story.
EXPECTED = {
    "read": Expected(
        once=(r"\ba\.ipynb", REVISION, r"cell:0$", r"cell:2$", r"^prices = \[3, 1, 2\]$", r"^total = sum\(price\)$"),
    ),
    "ambiguous_edit": Expected(start=r"error: ", once=(r"occurs 2 times", r"nothing was written")),
    "edit": Expected(once=(REVISION, r"^-prices = \[3, 1, 2\]$", r"^\+prices = \[3, 1, 2, 4\]$")),
    "insert": Expected(once=(REVISION, r"^\+print\('done', total \+ 1\)$")),
    "failing_run": Expected(
        start=r"error: cell 2\b",
        once=(r"^NameError: name 'price' is not defined$", r"^(    |-+> 1 )total = sum\(price\)$", REVISION, IMAGE),
        never=(r"done \d",),
        images=1,
    ),
    "fix": Expected(once=(REVISION, r"^-total = sum\(price\)$", r"^\+total = sum\(prices\)$")),
    "run": Expected(start=OK, once=(r"^total 10$", r"^done 11$", REVISION, IMAGE), never=(r"rror",), images=1),
    "set_variable": Expected(start=OK, outputs=0),
    "get_variable": Expected(start=OK, once=(r"^42$",), outputs=1),
    "many_lines": Expected(
        start=OK,
        once=(r"^line 0$", rf"^line {LINES - 1}$", TRUNCATION, rf"{TRUNCATION}[\s\S]*\bartifact://\w+"),
        outputs=1,
    ),
    "range": Expected(
        once=(r"^line 50000$", r"^line 50001$", r"^line 50002$"), never=(r"^line 49999$", r"^line 50003$")
    ),
    "search": Expected(once=(r"\b77778\b.*\bline 77777$",)),
    "long_eval": Expected(
        start=r"running: ", once=(r"\bcell 1 of 1\b", r"^started$"), never=(r"finished",), outputs=1
    ),
    "wait": Expected(start=OK, once=(r"^started$", r"^finished$"), outputs=1),
    "second_run": Expected(start=OK, once=(r"^place subdirectory$", REVISION), outputs=1),
    "second_variable": Expected(start=OK, once=(r"^'directory'$",), outputs=1),
    "first_variable": Expected(start=OK, once=(r"^20$",), outputs=1),
    # Each host has its own text.
    "timed_out_call": Expected(once=(r"(?i)timed out|error occurred",)),
    "kept_variable": Expected(start=OK, once=(r"^46$", r"\(call_cancelled\)"), outputs=1),
}

# Keys of MCP results and of the reports of the server. A text with one of them contains a result as JSON.
JSON_KEY = re.compile(
    r'"(structured_?content|is_?error|resource_link|mime_?type|cells|notices|execution_count|previous_revision)"',
    re.IGNORECASE,
)
# The start of a PNG file as base64, or any long base64.
BASE64 = re.compile(r"iVBORw0KGgo|[A-Za-z0-9+/]{200}")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# A line that is too long to occur twice by chance.
LONG_LINE = 40


@pytest.mark.parametrize("name", MCP_HOSTS)
def test_a_complete_story(name, project, tmp_path):
    host = MCP_HOSTS[name]
    create_notebooks(project)
    steps = STEPS if host.extends_limit else STEPS + TIMEOUT_STEPS
    model = ScriptedModel(steps, host.tool_prefix)
    try:
        ended = host.run(project, model, PROMPT)
    finally:
        model.close()
    requests = [{"path": request.path, "body": request.body} for request in model.requests]
    (tmp_path / "requests.json").write_text(json.dumps(requests, indent=1, ensure_ascii=False))

    results = model.results()
    problems = list(model.failures)
    if ended.returncode != 0 or FINAL_MESSAGE not in ended.stdout:
        problems.append(f"the host ended with {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    names = [step.name for step in steps]
    if list(results) != names:
        problems.append(f"the results are of the steps {list(results)}")
    for step in names:
        if step in results:
            problems += [f"{step}: {problem}" for problem in check_result(results[step], EXPECTED[step], host.unpack)]
    problems += remaining_processes(project)
    if problems:
        pytest.fail("\n".join([*problems, f"requests: {tmp_path / 'requests.json'}"]), pytrace=False)


def check_result(result, expected, unpack):
    """Returns the differences between a tool result and the expected one, and the text of the result."""
    text = unpack(result.text)
    problems = []
    if not re.match(expected.start, text):
        problems.append(f"does not start with `{expected.start}`")
    for pattern in expected.once:
        count = len(re.findall(pattern, text, re.MULTILINE))
        if count != 1:
            problems.append(f"has `{pattern}` {count} times")
    for pattern in expected.never:
        if re.search(pattern, text, re.MULTILINE):
            problems.append(f"has `{pattern}`")
    problems += check_outputs(text, expected.outputs)
    problems += check_truncation(text)
    problems += check_images(result.images, expected.images)
    problems += check_blocks(result)
    problems += check_repetition("\n".join([text, *result.added_texts]))
    if problems:
        excerpt = text if len(text) <= 2_000 else f"{text[:1_000]}\n…\n{text[-1_000:]}"
        problems.append(f"its text:\n{excerpt}\n")
    return problems


def check_outputs(text, count):
    """Each `<output N>` has its `</output N>`."""
    borders = re.findall(r"^<(/?)output (\w+)>$", text, re.MULTILINE)
    opened, closed = borders[::2], borders[1::2]
    if [("/", number) for _, number in opened] != closed:
        return [f"has the borders {borders}"]
    if count is not None and len(opened) != count:
        return [f"has {len(opened)} outputs instead of {count}"]
    return []


def check_truncation(text):
    """The number of lines that a truncation mark states is right."""
    found = re.search(TRUNCATION, text, re.MULTILINE)
    if not found:
        return []
    shown = len(re.findall(r"^line \d+$", text, re.MULTILINE))
    if shown + int(found[1]) != LINES:
        return [f"has {shown} lines beside `{found[0]}`"]
    return []


def check_images(images, count):
    problems = []
    if len(images) != count:
        problems.append(f"has {len(images)} images instead of {count}")
    for image in images:
        kind, _, data = image.partition(",")
        if kind != "data:image/png;base64" or not base64.b64decode(data).startswith(PNG_SIGNATURE):
            problems.append(f"has an image that is no PNG: {image[:80]}")
    return problems


def check_blocks(result):
    """Checks of the blocks as the host sends them."""
    problems = []
    text = "\n".join([*result.texts, *result.added_texts])
    if result.message_count != 1:
        problems.append(f"occurs in {result.message_count} messages")
    if result.other_types:
        problems.append(f"has blocks of the types {result.other_types}")
    if len(text) >= RESULT_LIMIT:
        problems.append(f"has {len(text)} characters")
    if found := BASE64.search(text):
        problems.append(f"has base64 in a text: {found[0]}")
    # Quotation marks are escaped in JSON that is part of a JSON string.
    if found := JSON_KEY.search(text.replace("\\", "")):
        problems.append(f"has JSON with the key {found[0]} in a text")
    return problems


def check_repetition(text):
    """No long line occurs twice."""
    lines = [line.strip() for line in text.splitlines()]
    repeated = {line for line in lines if len(line) >= LONG_LINE and lines.count(line) > 1}
    return [f"repeats {repeated}"] if repeated else []


def remaining_processes(project):
    """Processes with the home of the project. After the end of the host its server and kernels end."""
    deadline = time.monotonic() + PROCESS_END_TIMEOUT
    while True:
        remaining = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == str(project.home):
                    remaining.append(f"process {process.pid} remains: {process.cmdline()}")
            except psutil.Error:
                pass
        if not remaining or time.monotonic() > deadline:
            return remaining
        time.sleep(0.1)
