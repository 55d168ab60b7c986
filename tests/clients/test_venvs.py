"""Checks of the set-up: the third-party clients are installed, and the TLS proxy really uses TLS."""

import pytest

from tests.clients.tls_proxy import TlsProxy
from tests.clients.venvs import NAMES, client

pytestmark = pytest.mark.extended

PACKAGES = {"python-twitter": "python-twitter", "tweepy3": "tweepy", "tweepy4": "tweepy", "twitter": "twitter"}
VERSIONS = {"python-twitter": "3.5", "tweepy3": "3.10.", "tweepy4": "4.", "twitter": "1.19."}


@pytest.mark.parametrize("name", NAMES)
async def test_the_client_is_installed_in_its_own_environment(name: str) -> None:
    """Each client has the pinned version, and its environment has no other client."""
    async with client(name, "version.py", PACKAGES[name]) as program:
        assert (await program.hear(PACKAGES[name])).startswith(VERSIONS[name])
        assert await program.end() == 0


@pytest.mark.parametrize("library", ["requests", "urllib"])
async def test_a_client_reaches_the_server_by_tls_if_it_trusts_the_authority(tls: TlsProxy, library: str) -> None:
    """Both HTTP libraries of the clients verify the certificate and accept it."""
    async with client("tweepy4", "get.py", f"{tls.address}/healthz", library, ca=tls.ca) as program:
        assert await program.hear("status") == 200


@pytest.mark.parametrize("library", ["requests", "urllib"])
async def test_a_client_without_the_authority_refuses_the_connection(tls: TlsProxy, library: str) -> None:
    """A client that does not trust the authority refuses the connection. Otherwise the proxy would prove nothing."""
    async with client("tweepy4", "get.py", f"{tls.address}/healthz", library) as program:
        assert "certificate" in await program.hear("failed")
