"""Cells whose values are shown in another way than that of the last expression:
`ast_node_interactivity` and transformers of the user."""

import ast
import sys
import warnings

from . import cell, lazy
from .state import STATE

DEFAULT = "last_expr"
MODES = ("all", "last", DEFAULT, "none", "last_expr_or_assign")


def current():
    """Return the value of `ast_node_interactivity`. Notebooks set it on get_ipython(), with %config,
    or on IPython's class InteractiveShell."""
    shell = STATE.shell
    value = DEFAULT if shell is None else shell.ast_node_interactivity
    module = sys.modules.get("IPython.core.interactiveshell")
    if value == DEFAULT and module is not None:
        of_class = vars(module.InteractiveShell).get("ast_node_interactivity")
        value = of_class if isinstance(of_class, str) else value
    if value not in MODES:
        raise ValueError(
            "ast_node_interactivity is one of %s, not %r" % (", ".join(MODES), value)
        )
    return value


def transform(raw, shell):
    """Return the Python text of a cell, with the user's input transformers applied."""
    lines = raw.splitlines(True)
    for function in shell.input_transformers_cleanup:
        lines = function(lines)
    text = lazy.load("transform").transform_cell("".join(lines))
    lines = text.splitlines(True)
    for function in shell.input_transformers_post:
        lines = function(lines)
    return "".join(lines)


def compile_cell(code, name):
    """Return (code objects, whether the last one is an expression whose value is shown)."""
    mode, transformers = current(), STATE.shell.ast_transformers if STATE.shell else ()
    if mode == DEFAULT and not transformers:
        return cell.compile_last_expression(code, name)
    return _compile_tree(code, name, mode, list(transformers))


def _compile_tree(code, name, mode, transformers):
    flags = cell.TOP_LEVEL_AWAIT | STATE.future_flags
    tree = compile(code, name, "exec", flags | cell.ONLY_AST, True)
    for transformer in transformers:
        tree = _apply(transformer, tree)
    ast.fix_missing_locations(tree)
    body = tree.body
    if mode == "last_expr_or_assign":
        body = body + _assigned_name(body[-1]) if body else body
    if not body:
        return [], False
    shown = _shown_nodes(body, mode)
    if isinstance(body[-1], ast.Expr) and cell.ends_with_semicolon(code, body[-1]):
        shown = []
    parts, statements = [], []
    for node in body:
        if node not in shown:
            statements.append(node)
            continue
        parts += _module_part(statements, name, flags)
        statements = []
        parts.append(compile(ast.Interactive([node]), name, "single", flags, True))
    return parts + _module_part(statements, name, flags), False


def _module_part(statements, name, flags):
    if not statements:
        return []
    code = compile(ast.Module(list(statements), []), name, "exec", flags, True)
    STATE.future_flags |= code.co_flags & cell.FUTURE_FLAGS
    return [code]


def _shown_nodes(body, mode):
    """Return the nodes whose values sys.displayhook receives."""
    if mode == "all":
        return list(body)
    if mode == "last":
        return body[-1:]
    return body[-1:] if mode != "none" and isinstance(body[-1], ast.Expr) else []


def _assigned_name(node):
    """Return [an expression with the name that a statement assigns], or []."""
    if isinstance(node, ast.Assign):
        node = node.targets[0]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        node = node.target
    if not isinstance(node, ast.Name):
        return []
    name = ast.Expr(ast.Name(node.id, ast.Load()))
    ast.copy_location(name, node)
    return [ast.fix_missing_locations(name)]


def _apply(transformer, tree):
    """Apply a transformer of the user. One that fails is removed, so that cells still run."""
    try:
        return transformer.visit(tree)
    except Exception as error:
        if type(error).__name__ == "InputRejected":
            raise
        warnings.warn("AST transformer %r raised an error. It is removed." % (transformer,))
        STATE.shell.ast_transformers.remove(transformer)
        return tree
