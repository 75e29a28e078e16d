"""Certificates of the webhook: an authority of its own in memory, or files that somebody else renews.

A server gets new certificates into its running context, so that nothing is restarted.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from coterie.errors import UsageError

AUTHORITY_DAYS = 365
SERVER_HOURS = 24
# Clocks of API servers differ from ours.
_SKEW = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A certificate with its key as PEM, and the time of its renewal."""

    chain: bytes
    key: bytes
    renew_at: datetime


class Authority:
    """A certificate authority that exists in this process only; its key is never written."""

    def __init__(self, now: datetime) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "coterie-operator")])
        life = timedelta(days=AUTHORITY_DAYS)
        self.renew_at = now + life * 2 / 3
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            _begun(self._name, self._name, self._key.public_key(), now, now + life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._identifier = identifier

    @property
    def certificate(self) -> bytes:
        """The certificate of the authority as PEM, which clients need."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, host: str, now: datetime) -> ServerCertificate:
        """Return a certificate for a host name or an address; it is renewed after two thirds of its time."""
        key = ec.generate_private_key(ec.SECP256R1())
        life = timedelta(hours=SERVER_HOURS)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        made = (
            _begun(name, self._name, key.public_key(), now, now + life)
            .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = made.public_bytes(serialization.Encoding.PEM) + self.certificate
        return ServerCertificate(chain, private, now + life * 2 / 3)


def server_context() -> ssl.SSLContext:
    """Return a context for a server, without a certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load(context: ssl.SSLContext, certificate: ServerCertificate) -> None:
    """Give a context a certificate; connections from now on use it."""
    with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
        chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        key.touch(mode=0o600)
        chain.write_bytes(certificate.chain)
        key.write_bytes(certificate.key)
        _use(context, chain, key)


def load_files(context: ssl.SSLContext, folder: Path) -> bytes:
    """Give a context the certificate in a folder, as cert-manager writes it, and return that of its authority."""
    try:
        authority = (folder / "ca.crt").read_bytes()
        ssl.create_default_context(cadata=authority.decode())
        _use(context, folder / "tls.crt", folder / "tls.key")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the certificate in {folder} cannot be used: {error}", "It needs tls.crt, tls.key and ca.crt in PEM."
        ) from None
    return authority


def _use(context: ssl.SSLContext, chain: Path, key: Path) -> None:
    """Give connections from now on a certificate; one that does not fit its key, as during a renewal, is not used.

    A context in use would have the new certificate with the old key for a moment, so each certificate has its own.
    """
    fresh = server_context()
    fresh.load_cert_chain(chain, key)

    def chosen(connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = fresh

    context.sni_callback = chosen


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SKEW)
        .not_valid_after(end.astimezone(UTC))
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
