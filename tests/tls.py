"""A certificate authority that lives as long as a test run, and a TLS proxy before a server or a Redis."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.x509.oid import NameOID

from tests.end_to_end.faults.proxy import Proxy, Target


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
    names = [x509.DNSName("localhost"), x509.DNSName("server.test"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
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


class TlsProxy(Proxy):
    """Takes TLS on a free port of localhost and forwards the plain bytes to ``target``. Clients trust ``ca``."""

    def __init__(self, target: Target, authority: Authority) -> None:
        super().__init__(target, tls=authority.context())
        self.ca = authority.ca

    @property
    def netloc(self) -> str:
        return f"localhost:{self.address[1]}"
