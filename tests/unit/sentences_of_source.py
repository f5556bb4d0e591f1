"""Comparisons in the source of what somebody said with a sentence of ours: words that are read as data."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

SAID = frozenset({
    "cure", "message", "note", "notes", "said", "sentence", "summary", "text", "told", "unblocks", "why", "words"})
"""Names of what is written for people."""
COMPARED = frozenset({"startswith", "endswith", "match", "fullmatch", "search"})
SENTENCE = re.compile(r"\w .?\w|^ ?\w+ $|^ \w+$")
"""Two words, or one with a blank about it."""


def compared(sources: Mapping[str, str]) -> Iterator[str]:
    """file:line: what, for each of them: a sentence in place, a module's name for one, or the name of one of several."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    constants = {target.id for tree in trees.values() for node in tree.body if isinstance(node, ast.Assign)
                 and _is_text(node.value, ()) for target in node.targets if isinstance(target, ast.Name)}
    for name, tree in trees.items():
        yield from (f"{name}:{node.lineno}: {ast.unparse(node)}" for node in _found(tree, constants))


def _found(node: ast.AST, constants: Collection[str]) -> Iterator[ast.expr]:
    loops = node.generators if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp) else [node]
    constants = {*constants, *(each.target.id for each in loops if isinstance(each, ast.comprehension | ast.For)
                               and isinstance(each.target, ast.Name) and _is_text(each.iter, constants))}
    sides: Iterable[ast.expr] = ()
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COMPARED:
        sides = (node.func.value, *node.args)
    if isinstance(node, ast.expr) and any(map(_is_said, sides)) and any(_is_text(side, constants) for side in sides):
        yield node
    for each in ast.iter_child_nodes(node):
        yield from _found(each, constants)


def _is_said(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in SAID
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in SAID
        case ast.Call(func=function, args=[first, *_]):
            by_name = isinstance(first, ast.Constant) and first.value in SAID
            return by_name or _is_said(first) or (isinstance(function, ast.Attribute) and _is_said(function.value))
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_said(inner)
    return False


def _is_text(node: ast.expr, constants: Collection[str]) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return SENTENCE.search(text) is not None
        case ast.JoinedStr(values=values):
            shown = "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in values)
            return SENTENCE.search(shown) is not None
        case ast.BinOp(left=left, right=right):
            return _is_text(left, constants) or _is_text(right, constants)
        case ast.Tuple(elts=elements) | ast.Set(elts=elements) | ast.List(elts=elements):
            return any(_is_text(each, constants) for each in elements)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in constants
    return False
