"""text/plain of results, compared with IPython's pretty printer where it is installed."""

import collections
import sys

import pytest
from host import RUNNER_DIRECTORY, error, result, status

sys.path.insert(0, RUNNER_DIRECTORY)

from cellwright_runner.pretty import pretty  # noqa: E402

VALUES = [
    "[]", "()", "{}", "set()", "frozenset()", "[1]", "(1,)", "{1: 2}", "{1}", "frozenset({1, 2})",
    "list(range(10))", "list(range(30))", "list(range(100))", "list(range(1500))", "tuple(range(40))",
    "{i: i * i for i in range(30)}", "{str(i): list(range(i)) for i in range(12)}",
    "{'a': {'b': {'c': list(range(40))}}}", "[[1, 2, [3, 4]] * 10] * 3", "set(range(40))",
    "{'b', 'a', 'c'}", "{1, 'a'}", "['x' * 100]", "['x' * 30, 'y' * 30, 'z' * 30]", "'x' * 200",
    "b'x' * 200", "{'key' * 10: 'value' * 20}", "[(1, 2), (3, 4)] * 10", "[None, True, 1.5, 2j]",
    "{i for i in 'hello world, how are you today my friend'}", "[{'a': 1, 'b': [1, 2, 3]}] * 6",
    "int", "ValueError", "type", "len", "print", "Exception('x')", "range(5)", "slice(1, 2)", "...",
    "[int, len]", "{'f': len, 'g': ValueError}", "bytearray(b'x')", "[[]]", "[()]", "[{}]", "((),)",
    "[set()]", "__import__('collections').OrderedDict(a=1)",
    "__import__('collections').Counter('hello')", "__import__('collections').deque([1, 2])",
    "__import__('collections').deque([1, 2], maxlen=3)",
    "__import__('collections').defaultdict(int, {'a': 1})", "__import__('datetime').date(2020, 1, 1)",
    "__import__('fractions').Fraction(1, 3)", "__import__('types').SimpleNamespace(a=1)",
    "__import__('decimal').Decimal('1.5')", "__import__('pathlib').PurePosixPath('/a/b')",
    "__import__('collections').Counter()", "__import__('collections').OrderedDict()",
    "__import__('collections').UserList(range(30))", "__import__('collections').UserDict(a=1)",
    "__import__('collections').deque(range(30), maxlen=40)", "__import__('types').MappingProxyType({'a': 1})",
    "__import__('types').SimpleNamespace(a=list(range(30)), b={'c': 1})", "[Exception('x', 1), KeyError('k')]",
    "__import__('json').JSONDecodeError('m', 'doc', 0)", "Plain(a=1)", "[Pretty(a=1)]", "PrettyList([1])",
    "CounterOfMine('aab')", "ListOfMine(range(30))", "DictWithRepr(a=1)", "Ends()", "[Ends(), Ends()]", "Several()",
    "WithMeta", "super(Plain, Plain())", "[1.5, float('nan')]", "set(range(1000))", "True", "[].append", "MyError('x')",
    "Tuple2(1, 2)", "(StrOfMine('a'),)",
]  # fmt: skip


class Plain(dict):
    pass


class Pretty(dict):
    def _repr_pretty_(self, p, cycle):
        p.text("Pretty!")


class PrettyList(list):
    def _repr_pretty_(self, p, cycle):
        with p.group(4, "PL(", ")"):
            p.pretty(list(self))


class CounterOfMine(collections.Counter):
    pass


class ListOfMine(collections.UserList):
    pass


class DictWithRepr(dict):
    def __repr__(self):
        return "D!"


class Ends:
    def __repr__(self):
        return "text with an end\n"


class Several:
    def __repr__(self):
        return "a\n\nb\n"


class Meta(type):
    def __repr__(cls):
        return "M"


class WithMeta(metaclass=Meta):
    pass


class MyError(Exception):
    pass


class StrOfMine(str):
    pass


Tuple2 = collections.namedtuple("Tuple2", "a b")


@pytest.mark.parametrize("value", VALUES)
def test_same_as_ipython(value):
    oracle = pytest.importorskip("IPython.lib.pretty")
    obj = eval(value)
    assert pretty(obj) == oracle.pretty(obj, max_width=79)


def test_cycles():
    a = [1]
    a.append(a)
    assert pretty(a) == "[1, [...]]"
    d = {}
    d["d"] = d
    assert pretty(d) == "{'d': {...}}"


def test_long_sequences_are_cut():
    text = pretty(list(range(5000)))
    assert text.endswith(" 999,\n ...]")


def test_subclasses():
    class L(list):
        pass

    class M(list):
        def __repr__(self):
            return "M!"

    assert pretty([L([1]), M([1])]) == "[[1], M!]"


def test_objects(host):
    assert result(host.run("class A: pass\nA()")).startswith("<__main__.A at 0x")
    assert result(host.run("A")) == "__main__.A"
    assert result(host.run("def f(x, *, y=1): pass\nf")) == "<function __main__.f(x, *, y=1)>"
    assert result(
        host.run("class B:\n    def __repr__(self): return 'line 1\\nline 2'\n[B(), B()]")
    ) == ("[line 1\n line 2,\n line 1\n line 2]")
    events = host.run(
        "class P:\n    def _repr_pretty_(self, p, cycle):\n        with p.group(2, 'P(', ')'):\n"
        "            for i in range(3):\n                if i: p.text(','); p.breakable()\n"
        "                p.pretty([i])\nP(), [P()]"
    )
    assert result(events) == "(P([0], [1], [2]), [P([0], [1], [2])])"


def test_repr_inside_a_container_fails(host):
    events = host.run("class A:\n    def __repr__(self): 1/0\n[A()]")
    assert status(events) == "error" and error(events)["ename"] == "ZeroDivisionError"


def test_deep_nesting(host):
    events = host.run("x = []\nfor i in range(100000): x = [x]\nx")
    assert status(events) == "error" and error(events)["ename"] == "RecursionError"
    assert result(host.run("1")) == "1"


def test_registered_functions_apply_inside_containers(host):
    host.run(
        "f = get_ipython().display_formatter.formatters['text/plain']\n"
        "f.for_type(int, lambda n, p, cycle: p.text('int %d' % n))"
    )
    assert result(host.run("[5, {'a': 6}]")) == "[int 5, {'a': int 6}]"


def test_pprint_switches_the_layout(host):
    from host import text

    assert text(host.run("%pprint")) == "Pretty printing has been turned OFF\n"
    assert "\n" not in result(host.run("list(range(100))"))
    assert text(host.run("%pprint")) == "Pretty printing has been turned ON\n"
    assert "\n" in result(host.run("list(range(100))"))
