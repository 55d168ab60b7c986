"""Clients that generators make from the OpenAPI document of a server read typed events of this server."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.clients import npm, toolchains
from tests.clients.venvs import PROGRAMS
from tests.end_to_end.api import Api, mint

pytestmark = [pytest.mark.extended, pytest.mark.timeout(npm.TEST_SECONDS)]

OPENAPI_TOOLS = Path(__file__).parent / "locks" / "openapi"
"""The folder with the lock file of what makes a client in TypeScript."""

TSC = (
    "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler",
    "--lib", "es2022,dom,dom.iterable,dom.asynciterable",
)  # fmt: skip

# Without skip-prune, oapi-codegen leaves out what only `webhooks` names, and its code does not compile.
OAPI_CODEGEN = """
package: main
generate: {client: true, models: true}
output: api.gen.go
output-options:
  skip-prune: true
  include-operation-ids: [stream_filter_stream_get]
  name-normalizer: ToCamelCaseWithInitialisms
"""

POSTS = 100


async def _document(api: Api, folder: Path) -> None:
    """Put the document of the server, in the version that generators know, into a folder."""
    document = await api.done("GET", "/openapi.json?version=3.1")
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")


async def _post(api: Api) -> tuple[tuple[object, ...], list[str]]:
    """Let a new user post. Return the arguments of a program that reads the posts, and their texts."""
    uid = await api.user()
    texts = [f"tea {number}" for number in range(POSTS)]
    for text in texts:
        await api.post(uid, text)
    return (api.server.address, mint(uid), uid, POSTS), texts


async def test_a_typescript_client_made_from_the_document_reads_a_hundred_events(api: Api, tmp_path: Path) -> None:
    """The compiler knows the members of each kind of message, of streams and of polls, and refuses others."""
    node = npm.own_node()
    made = await asyncio.to_thread(npm.modules, OPENAPI_TOOLS)
    (tmp_path / "node_modules").symlink_to(made / "node_modules")
    shutil.copy(PROGRAMS / "openapi_reader.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    await _document(api, tmp_path)
    bin_folder = made / "node_modules" / ".bin"
    generate = (bin_folder / "openapi-typescript", "openapi.json", "--output", "api.d.ts")
    for command in (generate, (bin_folder / "tsc", *TSC, "openapi_reader.ts")):
        await asyncio.to_thread(npm.run, tmp_path, *command)
    arguments, texts = await _post(api)
    said = await asyncio.to_thread(npm.run, tmp_path, node.program, "openapi_reader.js", *arguments)
    assert json.loads(said) == {"read": texts, "polled": texts}


@pytest.mark.nightly  # the generator is compiled first
async def test_a_go_client_made_from_the_document_reads_a_hundred_events(api: Api, tmp_path: Path) -> None:
    """A message becomes a value of the type of its kind."""
    go = toolchains.program("go")

    def fetch(folder: Path) -> None:
        toolchains.run(folder, go, "build", "-o", "oapi-codegen", "tool")

    tools = await asyncio.to_thread(toolchains.fetched, "go", toolchains.LOCKS / "go", fetch)
    for name in ("go.mod", "go.sum"):
        shutil.copy(tools / name, tmp_path)
    shutil.copy(PROGRAMS / "openapi_reader.go", tmp_path)
    (tmp_path / "config.yaml").write_text(OAPI_CODEGEN, encoding="utf-8")
    await _document(api, tmp_path)
    generate = (tools / "oapi-codegen", "-config", "config.yaml", "openapi.json")
    for command in (generate, (go, "build", "-o", "reader", ".")):
        await asyncio.to_thread(toolchains.run, tmp_path, *command)
    arguments, texts = await _post(api)
    said = await asyncio.to_thread(toolchains.run, tmp_path, tmp_path / "reader", *arguments)
    assert json.loads(said) == {"read": texts}
