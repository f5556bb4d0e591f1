"""Commands in the source that are text with somebody's words in it, and were not made by `switchover.text.command`."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TOOL = r"(kubectl|helm|argocd|flux|switchover|pip|(kafka|zookeeper)-[a-z-]+\.sh|zookeeper-shell)"
A_TOOL = re.compile(TOOL)
KAFKAS = re.compile(
    r"kafka-(acls|configs|consumer-groups|features|groups|log-dirs|metadata-quorum|reassign-partitions|topics)\.sh")
COMMAND = re.compile(rf"(?<![\w./=-]){TOOL}(?![\w./=\[:-])")
"""The word as a command's first: no part of a name, of a path or of a label."""
QUOTED = re.compile(r"`[^`\0]*`")
"""In prose a command ends with its back quote."""
HOLE = "\0"
MAKERS = {"command": 0, "kubectl": 1, "Command": -1}
"""Of `switchover.text.command`: which argument is the template; -1 for what nobody else calls."""


@dataclass
class Linter(ast.NodeVisitor):
    """`constants` are the names of text of the whole package that has a command in it."""

    constants: Mapping[str, str]
    makers: dict[str, int] = field(default_factory=dict)
    """By their names in this file."""
    found: list[tuple[int, str]] = field(default_factory=list)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "switchover.text.command":
            self.makers |= {each.asname or each.name: MAKERS[each.name] for each in node.names}
        elif node.module == "switchover.text" and any(each.name == "command" for each in node.names):
            self.found.append((node.lineno, "what makes commands is imported by its own name: from switchover.text.command"))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._judge(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add):
            self._judge(node)
        elif isinstance(node.op, ast.Mod) and COMMAND.search(self._text(node.left)):
            self._refuse(node, "a command is filled by %")
        else:
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):        # a docstring, which is for whoever reads the source
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not (isinstance(node.value, str) and (said := COMMAND.search(node.value))):
            return
        rest = node.value[said.end():]
        if re.search(r"\{\w*\}", rest):
            self._refuse(node, "a command with fields")
        elif re.match(r" [^\n,;:()`]*…", rest):
            self._refuse(node, "a command that nobody can paste")

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> None:
        first, *rest = node.elts or [ast.Constant(None)]
        if isinstance(first, ast.Constant) and A_TOOL.fullmatch(str(first.value)) \
                and not all(isinstance(each, ast.Constant) for each in rest):
            self._refuse(node, "a command as a list of words")
        self.generic_visit(node)

    visit_List = visit_Tuple            # noqa: N815 (ast's own name)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in ("format", "format_map") and COMMAND.search(
                self._text(called.value)):
            self._refuse(node, "a command is filled by format")
        which = self.makers.get(called.id) if isinstance(called, ast.Name) else None
        if which is not None and not 0 <= which < len(node.args):
            self._refuse(node, "a Command that nobody has quoted")
        elif which is not None:
            self._judge_template(node.args.pop(which))
        self.generic_visit(node)

    def _judge_template(self, node: ast.expr) -> None:
        if (text := self._fixed(node)) is None:
            self._refuse(node, "the template is no constant")
        elif any("{}" in each.group().replace("{{", "").replace("}}", "") for each in re.finditer(r"'[^']*'", text)):
            self._refuse(node, "a word goes between quotes of the template")
        elif KAFKAS.search(text) and "--bootstrap-" not in text:
            self._refuse(node, "one of Kafka's tools without its server")

    def _fixed(self, node: ast.expr) -> str | None:
        """The text of what is made of constants alone, of an alternative both."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name) if name.isupper():
                return ""
            case ast.BinOp(left=left, op=ast.Add(), right=right) | ast.IfExp(body=left, orelse=right):
                parts = self._fixed(left), self._fixed(right)
                return None if None in parts else "".join(filter(None, parts))
        return None

    def _judge(self, node: ast.expr) -> None:
        text = QUOTED.sub("", self._text(node))
        if (said := COMMAND.search(text)) and HOLE in text[said.end():]:
            self._refuse(node, "a command with words that nobody has quoted")
        else:
            for each in ast.iter_child_nodes(node):
                if not isinstance(each, ast.Constant):
                    self.visit(each)

    def _text(self, node: ast.expr) -> str:
        match node:
            case ast.JoinedStr(values=values):
                return "".join(map(self._text, values))
            case ast.FormattedValue(value=value, format_spec=None):
                return self._text(value)
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in self.constants:
                return self.constants[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text(left) + self._text(right)
        return HOLE

    def _refuse(self, node: ast.expr, why: str) -> None:
        self.found.append((node.lineno, f"{why}: {ast.unparse(node)[:120]}"))


def constants_of(trees: Iterable[ast.Module]) -> Mapping[str, str]:
    """Names of modules' and classes' text that has a command in it."""
    named = ((target.id, node.value.value) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assign)
             and isinstance(node.value, ast.Constant) for target in node.targets if isinstance(target, ast.Name))
    return {name: text for name, text in named if name.isupper() and isinstance(text, str) and COMMAND.search(text)}


def not_made(sources: Mapping[str, str]) -> Iterator[str]:
    """file:line: why, for each command of these files that nobody has quoted."""
    trees = {name: ast.parse(text) for name, text in sources.items() if name != "text/command.py"}
    constants = constants_of(trees.values())
    for name, tree in trees.items():
        linter = Linter(constants)
        linter.visit(tree)
        yield from (f"{name}:{line}: {why}" for line, why in sorted(linter.found))


def sources(home: Path) -> Mapping[str, str]:
    return {str(path.relative_to(home)): path.read_text() for path in sorted(home.rglob("*.py"))}
