"""A certificate authority that lives as long as a test run, and a TLS proxy before a server or a Redis."""

import asyncio
import datetime as dt
import ipaddress
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.x509.oid import NameOID

from tests.listening import stop_listening
from tests.redis_process import RedisProcess


class Authority:
    """A certificate authority in ``folder``: ``ca`` is its root, ``certificate`` has the chain and key of localhost."""

    def __init__(self, folder: Path) -> None:
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of the tests")])
        root = _root(name, root_key)
        leaf = _leaf(name, key.public_key(), root_key)
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(_pem(root))
        self.certificate = folder / "localhost.pem"
        self.certificate.write_bytes(_pem(leaf) + _key_pem(key))

    def context(self) -> ssl.SSLContext:
        """Return the context of a server with this certificate."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.certificate)
        return made


def _root(name: x509.Name, key: EllipticCurvePrivateKey) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    public = key.public_key()
    return (
        _begun(name, name, public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def _leaf(issuer: x509.Name, public: EllipticCurvePublicKey, root_key: EllipticCurvePrivateKey) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
    return (
        _begun(subject, issuer, public)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )


def _begun(subject: x509.Name, issuer: x509.Name, public: EllipticCurvePublicKey) -> x509.CertificateBuilder:
    """Start a certificate that is valid for a day. It begins an hour ago, because clocks differ."""
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    return x509.CertificateBuilder(
        issuer, subject, public, x509.random_serial_number(), begin, begin + dt.timedelta(days=1)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class TlsProxy:
    """Takes TLS on a free port of localhost and forwards the plain bytes to ``server``."""

    def __init__(self, server: str, authority: Authority) -> None:
        behind = urlsplit(server)
        self._behind = (behind.hostname, behind.port)
        self._context = authority.context()
        self._talks: set[asyncio.Task[None]] = set()
        self.ca: Path = authority.ca
        self.port = 0

    @property
    def netloc(self) -> str:
        return f"localhost:{self.port}"

    @property
    def address(self) -> str:
        return f"https://{self.netloc}"

    async def __aenter__(self) -> Self:
        self._front = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self._context)
        self.port = self._front.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_listening(self._front)
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        server_reader, server_writer = await asyncio.open_connection(*self._behind)
        ways = [asyncio.create_task(pump(reader, server_writer)), asyncio.create_task(pump(server_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server_writer.close()
            writer.close()
            self._talks.discard(task)


async def pump(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def tls_in_front_of(target: RedisProcess, folder: Path) -> AsyncIterator[tuple[int, Path]]:
    """Accept TLS connections and forward them to a Redis. Yields the port, and the authority to trust."""
    authority = Authority(folder)

    async def forward(reader: StreamReader, writer: StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_unix_connection(str(target.socket))
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer), return_exceptions=True)

    listening = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=authority.context())
    try:
        yield listening.sockets[0].getsockname()[1], authority.ca
    finally:
        await stop_listening(listening)


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        await pump(reader, writer)
    finally:
        writer.close()
