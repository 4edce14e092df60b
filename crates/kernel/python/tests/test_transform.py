"""The transform: line numbers, the fast path, line ends, growth; properties without an oracle."""

import sys

import pytest
from host import RUNNER_DIRECTORY

sys.path.insert(0, RUNNER_DIRECTORY)

from cellwright_runner import scanner, transform  # noqa: E402
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
    transformed = transform_cell(code)
    assert transformed.count("\n") == code.rstrip("\n").count("\n") + 1


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
    "code, transformed",
    [
        ("\ufeffx = 1", "x = 1\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ("x = 1\ry = 2", "x = 1\ny = 2\n"),
        ("%pwd\r\nx", "get_ipython().run_line_magic('pwd', '')\nx\n"),
        ("!a \\\r\n b\r\nx", "get_ipython().system('a   b')\n\nx\n"),
    ],
)
def test_line_ends(code, transformed):
    assert needs_transform(code)
    assert transform_cell(code) == transformed


NESTED = [
    'f"{x["a"]}"\n%pwd\n',
    "f'{f'{1}'}'\n!ls\n",
    "f'''{\n'''\n%x\n'''\n}'''\n!ls\n",
    "f'{x:{w}}' f'{{%}}'\n%pwd\n",
]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="f-strings nest from Python 3.12 on")
@pytest.mark.parametrize("code", NESTED)
def test_nested_f_strings(code):
    transformed = transform_cell(code)
    assert "get_ipython" in transformed.rstrip("\n").split("\n")[-1]
    assert transformed.count("get_ipython") == 1


def test_nested_f_strings_in_a_cell(host, version):
    if version < (3, 12):
        pytest.skip("f-strings nest from Python 3.12 on")
    from host import result, text

    events = host.run('x = {\'a\': 1}\ny = f"{x["a"]}"\n!echo {y}\ny')
    assert text(events) == "1\n" and result(events) == "'1'"


class CountingText(str):
    """A text that counts the characters that slices and searches of it read."""

    work = 0

    def __getitem__(self, key):
        part = str.__getitem__(self, key)
        CountingText.work += len(part)
        return part

    def find(self, part, start=0, *end):
        at = str.find(self, part, start, *end)
        CountingText.work += (len(self) if at < 0 else at) - start
        return at

    def count(self, part, start=0, end=None):
        CountingText.work += (len(self) if end is None else end) - start
        return str.count(self, part, start, end)


class CountingPattern:
    """A compiled pattern that adds the length of each match to the work; a failed match is 1."""

    def __init__(self, pattern):
        self.pattern = pattern

    def match(self, text, at=0):
        match = self.pattern.match(text, at)
        CountingText.work += max(1, match.end() - at) if match else 1
        return match


@pytest.fixture
def work(monkeypatch):
    """work(text) transforms the text and returns the number of characters that were read."""
    monkeypatch.setattr(scanner, "_TOKEN", CountingPattern(scanner._TOKEN))
    ends = {quote: CountingPattern(end) for quote, end in scanner._STRING_ENDS.items()}
    monkeypatch.setattr(scanner, "_STRING_ENDS", ends)
    for name in ("_BLANK_LINES", "_INDENT"):
        monkeypatch.setattr(transform, name, CountingPattern(getattr(transform, name)))

    def measure(text):
        CountingText.work = 0
        for _ in transform._transformed_lines(CountingText(text), True):
            pass
        return CountingText.work

    return measure


@pytest.mark.parametrize(
    "start, line, end",
    [
        ("x = [\n", "    1,\n", "]\n%pwd\n"),
        ("", "x = 1\n", ""),
        ("", "%pwd\n", ""),
        ("", "x = !ls\n", ""),
        ("", "a.b?\n", ""),
        ("", "x = 'a' + \"b\"\n", ""),
        ("", "f'{x:>{width}}'\n", ""),
        ("", "'''\ntext\n'''\n", ""),
        ("", "# comment\n\n", ""),
        ("", "x = 'a lone quote\n", ""),
        ("!echo", " \\\n  word", "\n"),
        ("x = '''", "text\n", "'''\n"),
        ("x = '''", "text\n", ""),
        ("x = (", "a +\n", ""),
    ],
)
def test_work_grows_linearly_with_the_text(work, start, line, end):
    small, large = (work(start + line * count + end) for count in (500, 2000))
    assert small >= 500
    assert large <= 4.1 * small


def test_long_text_is_transformed():
    code = "x = [\n" + "    1,\n" * 200_000 + "]\n"
    expected = code + "get_ipython().run_line_magic('pwd', '')\n"
    assert transform_cell(code + "%pwd\n") == expected
