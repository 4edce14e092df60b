"""Our own transform: line numbers, speed paths, odd line ends; things the oracle cannot tell."""

import os
import sys

import pytest
from host import FOLDER

sys.path.insert(0, FOLDER)

from cellwright_runner.cell import needs_transform  # noqa: E402
from cellwright_runner.transform import transform_cell  # noqa: E402


@pytest.mark.parametrize(
    "code",
    [
        "\n\nx = 1\n%pwd\ny",
        "!a \\\n b \\\n c\nx",
        "x = !a \\\n b\ny",
        "a \\\n  .b?\nx",
        "  x\n  y\n",
        ">>> x\n... y\nz",
        "%a\n!b\nc?\n,d e\n",
    ],
)
def test_lines_keep_their_numbers(code):
    made = transform_cell(code)
    assert made.count("\n") == code.rstrip("\n").count("\n") + 1


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "print('%d' % 5)",
        "a = b % c\nif a != b:\n    x = '!'",
        "x = 'what?'\ny = 2",
        "d = {'a': 1,\n     'b': 2}",
        "f'{x!r}'",
        "def f(a, b):\n    return a / b",
        "@property\ndef f(self): pass",
    ],
)
def test_plain_code_takes_the_fast_path(code):
    assert needs_transform(code) is False


@pytest.mark.parametrize(
    "code, made",
    [
        ("\ufeffx = 1", "x = 1\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ("x = 1\ry = 2", "x = 1\ny = 2\n"),
        ("%pwd\r\nx", "get_ipython().run_line_magic('pwd', '')\nx\n"),
        ("!a \\\r\n b\r\nx", "get_ipython().system('a   b')\n\nx\n"),
    ],
)
def test_line_ends(code, made):
    assert needs_transform(code)
    assert transform_cell(code) == made


NESTED = [
    'f"{x["a"]}"\n%pwd\n',
    "f'{f'{1}'}'\n!ls\n",
    "f'''{\n'''\n%x\n'''\n}'''\n!ls\n",
    "f'{x:{w}}' f'{{%}}'\n%pwd\n",
]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="f-strings nest from 3.12 on")
@pytest.mark.parametrize("code", NESTED)
def test_nested_f_strings(code):
    made = transform_cell(code)
    assert "get_ipython" in made.rstrip("\n").split("\n")[-1]
    assert made.count("get_ipython") == 1


def test_every_version_agrees_on_nested_f_strings(host, version):
    if version < (3, 12):
        pytest.skip("3.12")
    from host import result, text

    events = host.run('x = {\'a\': 1}\ny = f"{x["a"]}"\n!echo {y}\ny')
    assert text(events) == "1\n" and result(events) == "'1'"


def test_long_text_is_linear():
    import time

    code = "x = [\n" + "    1,\n" * 200_000 + "]\n%pwd\n"
    start = time.perf_counter()
    made = transform_cell(code)
    assert time.perf_counter() - start < 10
    assert made.endswith("get_ipython().run_line_magic('pwd', '')\n")
    assert os.path.basename(FOLDER) == "python"
