"""Runs what we wrote and tells what the values are, exactly.

Each line is {"source": ..., "names": [...]}; the answer is the list of the values, described.
"""

import ast
import json
import math
import sys


def described(value):
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
        return ["list", [described(item) for item in value]]
    assert type(value) is dict
    return ["map", [[[ord(character) for character in key], described(item)] for key, item in value.items()]]


def answer(source, names):
    values = {}
    try:
        exec(compile(source, "cell", "exec"), values)
    except Exception as error:
        return {"error": repr(error)}
    # Nothing but literals and comments may stand there, and `float("nan")`.
    for statement in ast.parse(source).body:
        assert isinstance(statement, ast.Assign), ast.dump(statement)
        if "float(" not in source:
            ast.literal_eval(statement.value)
    # Every line must be one for everybody, also for those who know more line ends than Python does.
    if len(source.splitlines()) != 1 + len(names):
        return {"error": "the lines are torn"}
    return [described(values[name]) for name in names]


for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(answer(question["source"], question["names"])), flush=True)
