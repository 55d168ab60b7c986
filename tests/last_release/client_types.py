"""The facts of the JavaScript client: the names and arguments in its types, made as for its package."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.npm import PACKAGE, modules, own_node

PREFIX = "types "
"""How these facts begin."""

GIVEN = ("ClientOptions", "RequestOptions", "SessionStore", "StreamOptions", "StreamParameters")
"""The interfaces of objects that a program makes, so a new member that is needed would break it."""

EXPORTED = re.compile(
    r"^export (?:declare )?(?:class|function|interface|type) (\w+)(?:[^({;=]*\{(.*?)^\}|\((.*?)\): )?",
    re.MULTILINE | re.DOTALL,
)
"""The name of what is exported, and the members of a class or an interface, or the arguments of a function."""

MEMBER = re.compile(r"(?:readonly )?(\[[^]]*\]|\w+)(\?)?(?:<[^(]*>)?(\((.*)\))?(?:: .*)?", re.DOTALL)
"""A member: its name, whether it may be absent, and the arguments of a method."""


def type_facts(console: Path) -> list[str]:
    """Return the sorted facts of the client in a folder ``console``; none for a version before the package for npm.

    The client of such a version has no types, and does not say which of its members are for others. Skips the test
    if TypeScript cannot be installed here.
    """
    if not (console / "types.d.ts").exists():
        return []
    return sorted({PREFIX + fact for text in _declarations(console) for fact in _facts(text)})


def _declarations(console: Path) -> list[str]:
    """Return the types that TypeScript makes of the client, and those that stand beside it."""
    own_node()
    with TemporaryDirectory() as made:
        dist = Path(made) / "dist"
        dist.mkdir()
        for name in ("client.js", "types.d.ts"):
            shutil.copy(console / name, dist)
        for name in ("package.json", "tsconfig.json"):
            shutil.copy(PACKAGE / name, made)
        subprocess.run([modules(PACKAGE) / "node_modules" / ".bin" / "tsc"], cwd=made, check=True)
        return [(dist / name).read_text(encoding="utf-8") for name in ("client.d.ts", "types.d.ts")]


def _facts(text: str) -> Iterator[str]:
    plain = re.sub(r"/\*.*?\*/|^ *//.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    for exported in EXPORTED.finditer(plain):
        name, body, arguments = exported.groups()
        yield name
        if arguments is not None:
            yield from _arguments(name, arguments)
        needed = []
        for member in _split(body or "", ";"):
            found = MEMBER.fullmatch(re.sub(r"^get (\w+)\(\)", r"\1", member))
            assert found, f"{name}: {member}"
            own, may_be_absent, called, taken = found.groups("")
            needed += [] if may_be_absent else [own]
            if own != "constructor":
                yield f"{name}.{own}{may_be_absent}"
            if called:
                yield from _arguments(name if own == "constructor" else f"{name}.{own}", taken)
        if name in GIVEN:
            yield f"{name} needs: {', '.join(sorted(needed)) or 'nothing'}"


def _arguments(name: str, text: str) -> Iterator[str]:
    """Yield the arguments in their order. One that is taken apart has no name, and is told by its type."""
    given = [re.split(r"(\?)?: ", each, maxsplit=1) for each in _split(text, ",")]
    named = [first if first.isidentifier() else kind for first, _, kind in given]
    yield f"{name} needs {sum(optional is None for _, optional, _ in given)} arguments"
    yield from (f"{name} takes {number}: {each}" for number, each in enumerate(named, 1))


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a text between the separators that are in no brackets."""
    parts, depth = [""], 0
    for character in text.replace("=>", "→"):
        depth += (character in "([{<") - (character in ")]}>")
        if character == separator and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
