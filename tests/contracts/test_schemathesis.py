"""Every operation keeps the OpenAPI document: generated requests, valid and invalid, at a real server.

The tests take the operations from the route table, so they include new routes. Half of the ids exist, and every
operation must succeed at least once. Each operation has its own data.
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

from stream_server.web import routes
from stream_server.web.openapi import document
from stream_server.web.route import Route
from tests.contracts.populated import Populated
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

DRIVEN = [
    row
    for row in routes.ROUTE_TABLE
    if row.dialect is None and not row.lines and (not row.is_streaming or row.response is not None)
]
"""All routes but dialects, which have other documents, streams, whose answers do not end, and bodies of lines."""

DOCUMENT = document.build_document(routes.ROUTE_TABLE)

ID = "^[0-9]{1,20}$"

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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server"), "--webhook-networks", "127.0.0.0/8") as running:
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        kept.trust_env = False  # no search for proxies and passwords before each request
        yield kept


class Driver:
    """Sends requests to one operation and compares every answer with the document."""

    def __init__(self, server: Server, session: requests.Session, row: Route) -> None:
        self.row = row
        self.succeeded = False
        self.world = Populated(server.address, session, row.path)
        loaded = schemathesis.openapi.from_dict(self._document(), config=SchemathesisConfig.from_dict(CONFIG))
        self.operation = loaded[row.path][row.method]
        self._server, self._session = server, session

    def known(self) -> None:
        """Send the requests that must succeed."""
        path = {one.name: self.world.real(one.name)[0] for one in self.operation.path_parameters}
        for query in self.world.queries(self.row.method):
            if self.row.body is None:
                self.ask(self.operation.Case(path_parameters=path, query=query))
        for body in self.world.bodies(self.row.method):
            self.ask(self.operation.Case(path_parameters=path, body=body, media_type="application/json"))

    def made_up(self, mode: GenerationMode, examples: int) -> None:
        """Send ``examples`` generated requests, the same in every run."""

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
        """Send one request and check its answer."""
        if self.row.query is None:
            case.query = {**case.query, "wait": "0"}  # no answer may be waited for, whatever was made up
        response = case.call(base_url=self._server.address, session=self._session, headers=self.world.headers())
        case.validate_response(response, checks=[*PROMISES, checks.negative_data_rejection] if case.meta else PROMISES)
        self.succeeded = self.succeeded or response.status_code < 300

    def _document(self) -> Any:
        """The document of this operation. Answers may have no other members, and existing ids are among the values."""
        document = copy.deepcopy(DOCUMENT)
        operation = document["paths"][self.row.path][self.row.method.lower()]
        document["paths"] = {self.row.path: {self.row.method.lower(): operation}}
        schemas = document["components"]["schemas"]
        asked = _reached(operation.get("requestBody", {}), schemas)
        for name, schema in schemas.items():
            if name in asked and "properties" in schema:
                schema["properties"] = {key: self._filled(key, one) for key, one in schema["properties"].items()}
            elif "properties" in schema:
                schema["additionalProperties"] = False
        for parameter in operation.get("parameters", []):
            parameter["schema"] = self._filled(parameter["name"], parameter["schema"])
        return document

    def _filled(self, name: str, schema: Any) -> Any:
        """A schema that allows existing values beside its pattern."""
        if isinstance(schema, list):
            return [self._filled(name, one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if schema.get("pattern") == ID or (f"{{{name}}}" in self.row.path and "type" in schema):
            return {"anyOf": [{"enum": self.world.real(name)}, schema]}
        return {key: self._filled(name, one) for key, one in schema.items()}


def _reached(schema: Any, schemas: dict[str, Any]) -> set[str]:
    """The names of all components that a schema refers to."""
    names = {part.split('"')[0] for part in json.dumps(schema).split("#/components/schemas/")[1:]}
    return names.union(*(_reached(schemas[name], schemas) for name in names))


def _name(row: Route) -> str:
    return f"{row.method} {row.path}"


@pytest.mark.parametrize("row", DRIVEN, ids=_name)
def test_an_operation_keeps_its_promises(
    server: Server,
    session: requests.Session,
    row: Route,
    full: bool,  # noqa: FBT001 - a fixture
) -> None:
    """No 5xx, and no status, type, header or member that is not in the document; what is bad by it is refused.

    The documentation is not installed here: tests/browser/test_site.py reads it.
    """
    driver = Driver(server, session, row)
    ends_account = _name(row) == "DELETE /v1/users/me"  # what comes behind its success gets 401
    if not ends_account:
        driver.known()
    driver.made_up(GenerationMode.POSITIVE, 300 if full else 4)
    asked = driver.operation
    if not row.is_streaming and any((*asked.path_parameters, *asked.query, *asked.headers, *asked.body)):
        driver.made_up(GenerationMode.NEGATIVE, 300 if full else 3)
    if ends_account:
        driver.known()
    if row.path != "/docs/site/{path}":
        assert driver.succeeded, "only refusals were seen: say in tests/contracts/populated.py what is good"
