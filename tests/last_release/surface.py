"""Print what programs and people may depend on in this version of the server, one fact a line.

A fact is a name, and what its user must know of it. So a version keeps its promises if it has all facts of the version
before, and it may have more. The facts are read from the code of both versions, and are no list that somebody writes: a
name that is removed fails a test, and a new name needs nothing. The program also runs with the code of an older version
on its path.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

import stream_server
from filters.registry import Registry
from filters.rules.operators import operator_specs
from stream_server.cli import cli
from stream_server.commands import exit_codes
from stream_server.config.settings import SETTINGS, parse_limits
from stream_server.hub import disconnect
from stream_server.monitoring.metrics import ALL_METRICS
from stream_server.web.openapi.document import build_document
from stream_server.web.routes import ROUTE_TABLE
from stream_server.wire.errors import STATUS_BY_CODE
from stream_server.wire.messages import EVENT_TYPES

Json = dict[str, Any]

PLUG_INS = {
    "filters.base": ("Filter", "MatchedItem", "Role"),
    "filters.error": ("ParameterError",),
    "filters.event": ("Event",),
    "filters.index_keys": (),
    "filters.testing": ("check_filter",),
    "filters.tokens": ("fold",),
}
"""The modules that a filter of others imports, and the names that it takes there; all of a module if none are named."""

CLIENT = {
    "stream_server.client": (),
    "stream_server.client.sync": ("Client", "Events"),
    "stream_server.wire.messages": (),
    "stream_server.wire.objects": (),
}
"""The modules of the Python client, likewise."""

CONSOLE = Path(stream_server.__file__).parent / "console"


def facts() -> list[str]:
    """Return all facts, sorted."""
    every = (_settings(), _commands(cli, "stream-server"), _metrics(), _routes(), _streams(), _javascript())
    python = (_module(name, names) for name, names in (PLUG_INS | CLIENT).items())
    return sorted({fact for part in (*every, *python) for fact in part})


def _settings() -> Iterator[str]:
    for setting in SETTINGS:
        yield f"setting {setting.name}: {type(setting.default).__name__}, by default {setting.default!r}"
        yield f"setting {setting.name}: variable {setting.environment_variable}"
        yield from (f"setting {setting.name}: flag {setting.flag}" for _ in range(setting.has_flag))
        yield from (f"setting {setting.name}: {choice}" for choice in setting.choices)
        yield from (f"setting {setting.name}: can be reloaded" for _ in range(setting.is_reloadable))
    yield from (f"limit {name}: {number}" for name, number in parse_limits("on").items())


def _commands(command: click.Command, name: str) -> Iterator[str]:
    needed = sorted(str(param.name) for param in command.params if param.required)
    yield f"command {name} needs: {', '.join(needed) or 'nothing'}"
    for param in command.params:
        takes = "" if isinstance(param, click.Option) and param.is_flag else " VALUE"
        yield from (f"command {name} {each}{takes}" for each in (*param.opts, *param.secondary_opts))
        if isinstance(param.type, click.Choice):
            yield from (f"command {name} {param.opts[0]} {choice}" for choice in param.type.choices)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from _commands(found, f"{name} {each}")
    if name == "stream-server":
        codes = ("OK", "FAILED", "USAGE", "UNREACHABLE", "INTERRUPTED")
        yield from (f"exit code {code}: {getattr(exit_codes, code)}" for code in codes)


def _metrics() -> Iterator[str]:
    for name, kind, *_ in ALL_METRICS:
        yield f"metric {name}: {kind}"


def _routes() -> Iterator[str]:
    yield from (f"error {code}: {status}" for code, status in STATUS_BY_CODE.items())
    document = build_document(ROUTE_TABLE)
    promised = {path: methods for path, methods in document["paths"].items() if not path.startswith("/console/")}
    for path, methods in promised.items():
        for method, operation in methods.items():
            yield from _operation(f"{method.upper()} {path}", operation)
    yield from (f"route {row['method']} {row['path']}" for row in document["x-dialects"])
    schemas = document["components"]["schemas"]
    asked = _reachable(schemas, _bodies(document))
    for name, schema in schemas.items():
        title = _class_name(name)
        for member, inner in schema.get("properties", {}).items():
            yield f"object {title} has {member}: {_type(inner)}"
        needed = sorted(schema.get("required", ()))
        if name in asked:
            yield f"object {title} needs: {', '.join(needed) or 'nothing'}"
        else:
            yield from (f"object {title} always has {member}" for member in needed)


def _operation(route: str, operation: Json) -> Iterator[str]:
    yield f"route {route} is the operation {operation['operationId']}"
    scopes = sorted(scope for way in operation.get("security", ()) for scope in way.get("bearer", ()))
    yield f"route {route} needs the scopes: {', '.join(scopes) or 'none'}"
    for parameter in operation.get("parameters", ()):
        yield f"route {route} takes {parameter['in']} {parameter['name']}: {_type(parameter['schema'])}"
    needed = sorted(each["name"] for each in operation.get("parameters", ()) if each.get("required"))
    yield f"route {route} needs: {', '.join(needed) or 'nothing'}"
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"route {route} takes {media}: {_type(_content_schema(content))}"
    for status, answer in operation["responses"].items():
        if status[0] in "123":
            yield f"route {route} answers {status}"
            for media, content in answer.get("content", {}).items():
                yield f"route {route} answers {status} {media}: {_type(_content_schema(content))}"


def _content_schema(content: Json) -> Json:
    """Return the schema of a body, or that of each of its items."""
    found: Json = content["itemSchema"] if "itemSchema" in content else content.get("schema", {})
    return found


def _class_name(schema: str) -> str:
    """Return the name of a schema's class. The members are promised, and the names of schemas in the document not."""
    if schema.endswith("Body") and schema not in {"ExplainBody", "PreviewBody"}:
        return f"New{schema.removesuffix('Body')}"
    return "List" if schema == "UserList" else schema


def _type(schema: Json) -> str:
    """Return the type of a value as a short text. Bounds and patterns are left out: they may widen."""
    if "$ref" in schema:
        return _class_name(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(sorted(map(_type, schema[several])))
    if "enum" in schema:
        return " | ".join(sorted(map(repr, schema["enum"])))
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items') or {})}]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{{_type(schema['additionalProperties'])}}}"
    return str(schema.get("type", "any"))


def _bodies(document: Json) -> Iterator[Json]:
    for methods in document["paths"].values():
        for operation in methods.values():
            yield from operation.get("requestBody", {}).get("content", {}).values()


def _reachable(schemas: Json, begin: Iterable[Json]) -> set[str]:
    """Return the names of the schemas that these values refer to, also through others."""
    found: set[str] = set()
    waiting = [*begin]
    while waiting:
        names = {name for name in re.findall(r"#/components/schemas/(\w+)", repr(waiting.pop())) if name in schemas}
        waiting += [schemas[name] for name in names - found]
        found |= names
    return found


def _streams() -> Iterator[str]:
    yield from (f"filter {each.name}: {each.role}" for each in Registry.from_entry_points().all())
    for each in operator_specs():
        yield f"operator {each.name}: {each.value}"
        yield from (f"operator {alias}: another name of {each.name}" for alias in each.aliases)
    yield from (f"message {kind}: {each.__name__}" for kind, each in EVENT_TYPES.items())
    reasons = [each for each in vars(disconnect).values() if isinstance(each, disconnect.DisconnectReason)]
    yield from (f"goodbye {each.code}" for each in reasons)


def _javascript() -> Iterator[str]:
    text = (CONSOLE / "client.js").read_text(encoding="utf-8")
    exported = re.findall(r"^export (?:class|function|const) (\w+)", text, re.MULTILINE)
    yield from (f"javascript {name}" for name in exported)


def _module(name: str, names: Iterable[str]) -> Iterator[str]:
    module = importlib.import_module(name)
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == name and key[0] != "_"]
    for each in names or getattr(module, "__all__", own):
        value = getattr(module, each)
        yield f"python {name}.{each}"
        if inspect.isclass(value):
            yield from _class(f"{name}.{each}", value)
        elif inspect.isfunction(value):
            yield from _signature(f"{name}.{each}", value)


def _class(name: str, of: type[Any]) -> Iterator[str]:
    """Yield the public members of a class. Those of a base class of the same module belong to that class."""
    for member in sorted({*dir(of), *(each for base in inspect.getmro(of) for each in inspect.get_annotations(base))}):
        base = next(each for each in inspect.getmro(of) if member in {*vars(each), *inspect.get_annotations(each)})
        is_foreign = not base.__module__.startswith(("filters", "stream_server"))
        is_inherited = base is not of and base.__module__ == of.__module__
        if member[0] != "_" and not is_foreign and not is_inherited:
            yield f"python {name}.{member}"
            if inspect.isroutine(value := getattr(of, member, None)):
                yield from _signature(f"{name}.{member}", value)
    if "__init__" in vars(of):
        yield from _signature(name, of.__init__)


def _signature(name: str, function: Any) -> Iterator[str]:
    given = [one for one in inspect.signature(function).parameters.values() if one.name not in {"self", "cls"}]
    may_be_absent = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    needed = [one.name for one in given if one.default is one.empty and one.kind not in may_be_absent]
    yield f"python {name} needs: {', '.join(needed) or 'nothing'}"
    yield from (f"python {name} takes {each.name}" for each in given)


def main() -> None:
    """Print the facts."""
    sys.stdout.write("".join(f"{fact}\n" for fact in facts()))


if __name__ == "__main__":
    main()
