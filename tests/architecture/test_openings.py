"""A stream that opens without a task awaits nothing before it holds a slot; see `web/http/opening`.

The front door notices a breach while it runs, and only in the case that breaks the rule. This test reads all cases.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.architecture.source import modules, tree

WEB = "stream_server.web."

HOLDS = re.compile(r"hold_slot\(\w+\)|(opening|request\[OPENING\])\.hold_slot\(\)")
"""The calls behind which a function may wait for anything."""

PASSED_IN = {
    "prepare": ("prepare_filtered_stream", "plan_user_stream"),
    "handler": (
        "filter_stream", "sample_stream", "firehose_stream", "search_stream", "user_stream", "count_recent",
        "search_recent",
    ),
    "read_token": ("read_token",),
}
"""The functions that stand behind the name of a parameter or of a member, where an opening awaits it."""

LIMITS = ("check", "use", "delay_refusal", "_ask")
"""The methods of `RequestLimits` that an opening awaits. Other classes have methods of these names, too."""

EXCEPTIONS = {
    "_handle_in_turn": {"limits.turn(request)": "not for a stream"},
    "read_stream_parameters": {
        "_receive_parameters(request, separators)": "for a body, so aiohttp has read the request, in a task",
        "request.app[LIMITS].payer(request).run_in_turn(lambda: read(parse()))": "likewise, or for a poll",
    },
    "plan_stream": {"wait_for_head(app[HUB], start.position)": "the ring has the position, or Redis was asked for it"},
    "plan_user_stream": {"wait_for_head(app[HUB], start.position)": "as in `plan_stream`"},
    "_fetch_key_for": {"app[KEY_SET].ensure_key_for(token)": "it waits for a key that lacks, and then holds a slot"},
    "_plan_and_open": {
        "request.app[STORE].rules.get_all(request[CLAIMS].sub)": "Redis was asked for the saved rules of the plan"
    },
}
"""What a function may await without a slot, and why."""


class Function(NamedTuple):
    """An async function of the package, by its module and the class that has it, if any."""

    module: str
    owner: str
    node: ast.AsyncFunctionDef


def functions() -> dict[str, list[Function]]:
    """Return the async functions of the package by name. Different modules and classes may use a name."""
    found: dict[str, list[Function]] = {}
    for module, path in modules().items():
        if module.startswith(WEB):
            for node in tree(path).body:
                owner, members = (node.name, node.body) if isinstance(node, ast.ClassDef) else ("", [node])
                for member in members:
                    if isinstance(member, ast.AsyncFunctionDef):
                        found.setdefault(member.name, []).append(Function(module, owner, member))
    return found


def awaited(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement or an expression awaits. Functions within it have awaits of their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from awaited(child)
    if isinstance(node, ast.Await):
        yield node.value


def leaves(statements: list[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


class Early:
    """Collects what a function awaits on a way on which it holds no slot."""

    def __init__(self) -> None:
        self.calls: list[ast.expr] = []

    def read(self, statements: list[ast.stmt], *, held: bool) -> bool:
        """Read a block. Return whether a slot is held on all ways behind it."""
        for statement in statements:
            held = self.read_one(statement, held=held)
        return held

    def read_one(self, statement: ast.stmt, *, held: bool) -> bool:
        """Read a statement. Return whether a slot is held on all ways behind it. A loop may not run at all."""
        if isinstance(statement, ast.If):
            before = self.note(awaited(statement.test), held=held)
            ways = [self.read(way, held=before) or leaves(way) for way in (statement.body, statement.orelse)]
            return all(ways)
        if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
            if isinstance(statement, ast.AsyncFor):
                self.note(iter([statement.iter]), held=held)
            self.read(statement.body + statement.orelse, held=held)
            return held
        if isinstance(statement, ast.With | ast.AsyncWith):
            entered = [item.context_expr for item in statement.items]
            if isinstance(statement, ast.With):
                entered = [call for item in entered for call in awaited(item)]
            return self.read(statement.body, held=self.note(iter(entered), held=held))
        if isinstance(statement, ast.Try):
            ways = [self.read(statement.body + statement.orelse, held=held)]
            ways += [self.read(one.body, held=held) or leaves(one.body) for one in statement.handlers]
            self.read(statement.finalbody, held=held)
            return all(ways)
        assert not isinstance(statement, ast.Match), "read its cases here, too"
        return self.note(awaited(statement), held=held)

    def note(self, calls: Iterator[ast.expr], *, held: bool) -> bool:
        """Note calls in their order. Return whether one of them gets a slot, or it was ``held`` before."""
        for call in calls:
            if HOLDS.fullmatch(ast.unparse(call)):
                held = True
            elif not held:
                self.calls.append(call)
        return held


def followed(caller: Function, call: ast.expr, known: dict[str, list[Function]]) -> list[Function]:
    """Return the functions of the package that stand behind a call, none if it leads out of the package."""
    if not isinstance(call, ast.Call):
        return []
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
        if name in LIMITS:
            return [each for each in known[name] if each.owner == "RequestLimits"]
        found = [name] if name in PASSED_IN else []
    else:
        assert isinstance(call.func, ast.Name)
        found = [call.func.id]
    names = [one for name in found for one in PASSED_IN.get(name, (name,))]
    return [each for name in names for each in known.get(name, ()) if not each.owner or each.owner == caller.owner]


def early_awaits() -> Iterator[tuple[Function, str]]:
    """Yield what the functions of an opening await before they hold a slot, and follow those that they call."""
    known = functions()
    waiting, seen = list(known["handle_request"]), set[str]()
    while waiting:
        function = waiting.pop()
        where = f"{function.module}.{function.node.name}"
        if where in seen:
            continue
        seen.add(where)
        early = Early()
        early.read(function.node.body, held=False)
        for call in early.calls:
            text = ast.unparse(call)
            is_excepted = text in EXCEPTIONS.get(function.node.name, ())
            behind = [] if is_excepted else followed(function, call, known)
            waiting += behind
            if not behind:
                yield function, text
    assert f"{WEB}streaming.stream_plan.bind_filters" in seen, "the walk has lost its way"


def test_an_opening_holds_a_slot_before_it_waits() -> None:
    """Else a stream would wait in the front door without a task, and be aborted."""
    found = {(function.node.name, text) for function, text in early_awaits()}
    assert found == {(name, text) for name, texts in EXCEPTIONS.items() for text in texts}


@pytest.mark.parametrize(
    ("body", "early"),
    [
        ("await opening.hold_slot()\nawait redis()", []),
        ("await redis()\nawait opening.hold_slot()", ["redis()"]),
        ("if a:\n  await opening.hold_slot()\nawait redis()", ["redis()"]),
        ("if a:\n  await opening.hold_slot()\nelse:\n  raise b\nawait redis()", []),
        ("for a in b:\n  await opening.hold_slot()\nawait redis()", ["redis()"]),
        ("async with redis():\n  await opening.hold_slot()\nawait more()", ["redis()"]),
        ("try:\n  await opening.hold_slot()\nexcept a:\n  pass\nawait redis()", ["redis()"]),
        ("try:\n  await opening.hold_slot()\nexcept a:\n  return\nawait redis()", []),
        ("async def later():\n  await redis()", []),
    ],
)
def test_all_ways_to_a_wait_must_hold_a_slot(body: str, early: list[str]) -> None:
    seen = Early()
    seen.read(ast.parse(body).body, held=False)
    assert [ast.unparse(call) for call in seen.calls] == early
