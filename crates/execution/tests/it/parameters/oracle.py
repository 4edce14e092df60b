"""Runs the source of a parameter cell and describes the exact values.

Each line is {"source": ..., "names": [...]}; the reply is the list of descriptions.
"""

import ast
import json
import math
import sys


def describe(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", "nan" if math.isnan(value) else value.hex()]
    if isinstance(value, str):
        return ["text", [ord(character) for character in value]]
    if isinstance(value, list):
        return ["list", [describe(item) for item in value]]
    assert type(value) is dict
    return ["map", [[[ord(character) for character in key], describe(item)] for key, item in value.items()]]


def reply(source, names):
    values = {}
    try:
        exec(compile(source, "cell", "exec"), values)
    except Exception as error:
        return {"error": repr(error)}
    # The source may contain only assignments of literals, comments and `float("nan")`.
    for statement in ast.parse(source).body:
        assert isinstance(statement, ast.Assign), ast.dump(statement)
        if "float(" not in source:
            ast.literal_eval(statement.value)
    # Programs that recognise more line ends than Python must see the same lines.
    if len(source.splitlines()) != 1 + len(names):
        return {"error": "a line is broken"}
    return [describe(values[name]) for name in names]


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(reply(request["source"], request["names"])), flush=True)
