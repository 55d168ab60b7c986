"""Every operation keeps what the OpenAPI document says of it: made-up requests, good and bad, at a real server.

The table is walked, so a route that is added is driven from then on. Ids in requests are those of things that are
there as often as not, else all would be 404; each operation has a world of its own to take apart.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode, checks
from schemathesis.config import SchemathesisConfig

from stream_server.web import openapi, routes
from stream_server.web.route import Route
from tests.contracts.populated import Populated
from tests.end_to_end.server import Server

DRIVEN = [row for row in routes.TABLE if not row.streams or row.answer is not None]
"""All but the streams, whose answers have no end; those have tests of their own."""

ID = {"pattern": "^[0-9]{1,20}$"}

PROMISES = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]

CONFIG = {
    "generation": {"with-security-parameters": False},
    "checks": {"negative_data_rejection": {"expected-statuses": ["400", "403", "404", "409", "413", "415"]}},
}

SHARE = 0.9
"""So many operations must have answered 2xx at least once: a test that sees refusals only proves little."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server of this module's own; at the end it must stop cleanly, without a traceback in its log."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are kept."""
    with requests.Session() as kept:
        yield kept


@pytest.fixture(scope="module")
def succeeded() -> set[str]:
    """The operations that answered 2xx."""
    return set()


class Driver:
    """Asks one operation, and holds every answer against the document."""

    def __init__(self, server: Server, session: requests.Session, row: Route, succeeded: set[str]) -> None:
        self.row = row
        self.world = Populated(server, session)
        loaded = schemathesis.openapi.from_dict(self._document(), config=SchemathesisConfig.from_dict(CONFIG))
        self.operation = loaded[row.path][row.method]
        self._server, self._session, self._succeeded = server, session, succeeded

    def known(self) -> None:
        """What is certain to be good."""
        key = (self.row.method, self.row.path)
        ids = {one.name: self._ids(one.name) for one in self.operation.path_parameters}
        if not all(ids.values()):
            return
        path = {name: found[0] for name, found in ids.items()}
        for query in self.world.queries().get(key, [{}]):
            if self.row.body is None:
                self.ask(self.operation.Case(path_parameters=path, query=dict(query)))
            for body in self.world.bodies().get(key, []):
                self.ask(self.operation.Case(path_parameters=path, body=body, media_type="application/json"))

    def made_up(self, mode: GenerationMode, examples: int) -> None:
        """So many requests, the same ones in every run."""

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=self.operation.as_strategy(generation_mode=mode))
        def each(case: Case[Any]) -> None:
            self.ask(case)

        each()

    def ask(self, case: Case[Any]) -> None:
        """One request, and what must be true of its answer."""
        if self.row.streams:
            case.query = {**case.query, "wait": "0"}  # no answer may be waited for, whatever was made up
        response = case.call(base_url=self._server.address, session=self._session, headers=self.world.headers())
        judged = [*PROMISES, checks.negative_data_rejection] if case.meta else PROMISES
        case.validate_response(response, checks=judged)
        if response.status_code < 300:
            self._succeeded.add(f"{self.row.method} {self.row.path}")

    def _ids(self, name: str) -> list[str]:
        texts = {"login": [self.world.login], "tag": ["world"]}
        return texts[name] if name in texts else self.world.of(self.row.path, name)

    def _document(self) -> Any:
        """The document, made strict: no member of an answer that it does not say; with real ids in what it asks."""
        document = copy.deepcopy(openapi.described(routes.TABLE))
        schemas = document["components"]["schemas"]
        asked = _reached(document["paths"][self.row.path][self.row.method.lower()].get("requestBody", {}), schemas)
        for name, schema in schemas.items():
            if name in asked:
                self._fill_in(schema)
            elif "properties" in schema:
                schema["additionalProperties"] = False
        for parameter in document["paths"][self.row.path][self.row.method.lower()].get("parameters", []):
            parameter["schema"] = self._filled(parameter["name"], parameter["schema"])
        return document

    def _fill_in(self, schema: dict[str, Any]) -> None:
        for name, one in schema.get("properties", {}).items():
            schema["properties"][name] = self._filled(name, one)

    def _filled(self, name: str, schema: Any) -> Any:
        """A schema in which real ids, or a real login, stand beside the pattern that they follow."""
        if isinstance(schema, list):
            return [self._filled(name, one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        real = self._ids(name) if schema.items() >= ID.items() or f"{{{name}}}" in self.row.path else []
        if real and "type" in schema:
            return {"anyOf": [{"enum": real}, schema]}
        return {key: self._filled(name, one) for key, one in schema.items()}


def _reached(schema: Any, schemas: dict[str, Any]) -> set[str]:
    """The names of the components that a schema is made of."""
    names = {part.split('"')[0] for part in json.dumps(schema).split("#/components/schemas/")[1:]}
    return names.union(*(_reached(schemas[name], schemas) for name in names))


@pytest.mark.parametrize("row", DRIVEN, ids=lambda row: f"{row.method} {row.path}")
def test_an_operation_keeps_its_promises(
    server: Server, session: requests.Session, row: Route, succeeded: set[str], full: bool  # noqa: FBT001 - a fixture
) -> None:
    """No 5xx, and no status, type, header or member that is not in the document; what is bad by it is refused."""
    driver = Driver(server, session, row, succeeded)
    driver.known()
    driver.made_up(GenerationMode.POSITIVE, 300 if full else 15)
    asked = driver.operation
    if not row.streams and any((*asked.path_parameters, *asked.query, *asked.headers, *asked.body)):
        driver.made_up(GenerationMode.NEGATIVE, 300 if full else 15)


def test_most_operations_have_succeeded(succeeded: set[str]) -> None:
    """Comes after all the others of this module, which one process runs."""
    driven = {f"{row.method} {row.path}" for row in DRIVEN}
    assert len(succeeded & driven) >= SHARE * len(driven), sorted(driven - succeeded)
