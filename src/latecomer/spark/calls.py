"""Calls as they are written in code, read from text without running it: a name and literals."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from latecomer.errors import InputError, must


class Call(NamedTuple):
    """A name and what it is called with."""

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def read_call(text: str, where: str) -> Call:
    """Read one call.

    >>> read_call("tiers('1 second', '1 hour')", "--way")
    Call(name='tiers', arguments=('1 second', '1 hour'), keywords={})
    >>> read_call("count", "--aggregate")
    Call(name='count', arguments=(), keywords={})
    """
    wrong = InputError(must(where, "be a call with plain values", text, "e.g. \"tiers('1 second', '1 hour')\""))
    try:
        found = ast.parse(text.strip().lstrip("."), mode="eval").body
    except (SyntaxError, ValueError):
        raise wrong from None
    if isinstance(found, ast.Name):
        return Call(found.id, (), {})
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name):
        raise wrong
    try:
        arguments = tuple(ast.literal_eval(each) for each in found.args)
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in found.keywords if each.arg is not None}
    except ValueError:
        raise wrong from None
    if len(keywords) < len(found.keywords):
        raise wrong
    return Call(found.func.id, arguments, keywords)
