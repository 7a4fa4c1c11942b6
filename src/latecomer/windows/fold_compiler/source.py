"""The source of a user's function, and proof that it is the source of that function.

A function is translated from its source. It is taken where the function is made, since it is not everywhere that the
function runs, and believed only where it compiles to the very code of the function.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

Definition = ast.FunctionDef | ast.Lambda
_SPECIAL = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)


def source_of(function: Callable[..., Any]) -> str | None:
    """The text that a function was written as, where there is one."""
    if type(function) is not FunctionType:
        return None
    try:
        return dedent(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError):
        return None


def definition_of(code: CodeType, source: str) -> Definition | None:
    """The definition in a source that compiles to this code; none of a generator, or of other special functions."""
    if code.co_flags & _SPECIAL:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    return next((each for each in _definitions(tree) if _compiles_to(each, code)), None)


def free_names(definition: Definition, code: CodeType) -> tuple[str, ...]:
    """The names that a function reads and does not define."""
    loaded = dict.fromkeys(node.id for node in ast.walk(definition) if isinstance(node, ast.Name))
    own = {*code.co_varnames, *code.co_cellvars}
    return tuple(name for name in loaded if name not in own and name in (*code.co_names, *code.co_freevars))


def _definitions(tree: ast.AST) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []  # they run when the function is made; what they gave is the code
            yield node
        elif isinstance(node, ast.Lambda):
            yield node


def _compiles_to(definition: Definition, code: CodeType) -> bool:
    if definition.args.defaults or definition.args.kw_defaults:
        return False
    asked = {node.value.id for node in ast.walk(definition) if _is_of_name(node)}  # type: ignore[attr-defined]
    for imports in ("", "".join(f"import {name}\n" for name in asked & set(code.co_names))):
        if _traits(code) in map(_traits, _compiled_within(imports, definition, code)):
            return True
    return False


def _is_of_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _compiled_within(imports: str, definition: Definition, code: CodeType) -> list[CodeType]:
    """The code of a definition in a module that imports these names: calls of their functions are others."""
    text = imports + "def outer():\n" + "".join(f" {name} = None\n" for name in code.co_freevars) + " pass"
    module = ast.parse(text)
    outer = module.body[-1]
    assert isinstance(outer, ast.FunctionDef)
    outer.body.append(ast.Expr(definition) if isinstance(definition, ast.Lambda) else definition)
    try:
        compiled = compile(ast.fix_missing_locations(module), code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return []
    return list(_inner(next(_inner(compiled))))


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


def _traits(code: CodeType) -> tuple[Any, ...]:
    """What a code does, whatever it is called and wherever it was written."""
    constants = tuple((type(each), repr(each)) for each in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _SPECIAL)
    return (code.co_code, code.co_exceptiontable, constants, *names, *counts)
