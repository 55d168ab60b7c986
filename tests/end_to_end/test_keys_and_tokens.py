"""Each way to set the keys has a way to a token for ingest, and a command that cannot sign says what to do."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.command_line import Outcome, run
from tests.end_to_end.server import Server
from tests.end_to_end.test_external_identity import Issuer

pytestmark = pytest.mark.extended

Way = Callable[[Outcome], str]
"""Returns the token, by what the command ``token`` has printed."""


async def ingest(server: Server, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    line = b'{"op":"user","user":{"foreign_id":"u1"}}'
    async with (
        aiohttp.ClientSession(server.address) as session,
        session.post("/v1/ingest", headers=headers, data=line) as answer,
    ):
        return await answer.json(content_type=None)


def ask_for_token(server: Server, *options: str) -> Outcome:
    asked = ("--user", "site", "--create", "--scope", "ingest", "--ttl", "5m")
    return run("token", "--data-dir", server.data, *asked, *options)


def claims_of(outcome: Outcome) -> dict[str, Any]:
    """Return the claims that a command prints which cannot sign."""
    assert (outcome.code, outcome.out) == (2, ""), outcome
    assert "cannot sign tokens" in outcome.err
    assert "Redis" not in outcome.err
    claims: dict[str, Any] = json.loads(outcome.err[outcome.err.index("{") :])
    return claims


class KeyPair:
    """Files with the two keys of a site, and a key set."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        pem, public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        self.private, self.public = folder / "private.pem", folder / "public.pem"
        self.text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        self.private.write_bytes(self.text)
        self.public.write_bytes(key.public_key().public_bytes(pem, public))

    def sign(self, outcome: Outcome) -> str:
        return jwt.encode(claims_of(outcome), self.text, "ES256")


def printed(outcome: Outcome) -> str:
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return outcome.out.strip()


@pytest.mark.parametrize("key", ["private", "public"])
def test_a_key_of_each_kind_has_a_way_to_a_token(own_folder: Path, key: str) -> None:
    own_folder.mkdir(exist_ok=True)
    pair = KeyPair(own_folder)
    options: dict[str, tuple[str, ...]] = {
        "private": ("--jwt-algorithm", "ES256", "--jwt-key-file", str(pair.private)),
        "public": ("--jwt-algorithm", "ES256", "--jwt-key-file", str(pair.public)),
    }
    with Server(own_folder / "server", *options[key], variables={"STREAM_SERVER_JWT_SECRET": ""}) as server:
        outcome = ask_for_token(server, *options[key])
        tokens = [pair.sign(outcome) if key == "public" else printed(outcome)]
        if key == "public":
            refused = run("sign-in", "--data-dir", server.data, "--user", "site", *options[key])
            assert (refused.code, "private key" in refused.err) == (2, True), refused
            # The command may also run where the private key is.
            tokens.append(printed(ask_for_token(server, *options["private"])))
        for token in tokens:
            assert asyncio.run(ingest(server, token))["id"]


def test_the_issuer_of_a_key_set_signs_what_the_command_prints(own_folder: Path) -> None:
    issuer = Issuer()
    options = ("--jwt-algorithm", "RS256", "--jwt-jwks-url", issuer.url)
    with Server(own_folder / "server", *options, variables={"STREAM_SERVER_JWT_SECRET": ""}) as server:
        claims = claims_of(ask_for_token(server, *options))
        assert asyncio.run(ingest(server, jwt.encode(claims, issuer.key, "RS256")))["id"]
        outcome = ask_for_token(server, *options, "--settings-file", str(_external(own_folder)))
        assert outcome.code == 2
        assert "--scope-rules" in outcome.err
    done = run("serve", "--port", "0", "--demo", *options)
    assert (done.code, "--demo signs tokens" in done.err) == (2, True), done
    issuer.close()


def _external(folder: Path) -> Path:
    file = folder / "settings.toml"
    file.write_text('external_subjects = "on"\n')
    return file
