"""Passkeys by the rules of docs/spec/signed-votes.md: public keys of three kinds, and WebAuthn assertions over a text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from .. import _ed25519 as ed25519
from .._canonical import canonical_text
from .._errors import Malformed
from .._grammar import INSTANT, is_time
from .._shapes import is_object
from .._strictjson import parse_object
from ._encoding import sha
from ._flaw import MALFORMED, MISMATCH, Flaw, need

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_BUCKET = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9][05]:00Z", re.ASCII)
_ASSERTION = frozenset(("authenticator_data", "client_data_json", "credential_id", "signature", "time"))
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B

Verify = Callable[[bytes, bytes], bool]


def base64url(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unbase64url(text: Any) -> bytes:
    """Return the bytes of base64url in its one spelling. Errors are Flaw."""
    need(isinstance(text, str) and _BASE64URL.fullmatch(text) is not None, "base64url", MALFORMED)
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise Flaw("base64url", MALFORMED) from None
    need(base64url(raw) == text, "base64url", MALFORMED)
    return raw


def is_bucket(text: Any) -> bool:
    """Return whether a value is a time bucket."""
    return isinstance(text, str) and _BUCKET.fullmatch(text) is not None and is_time(text[:-1] + ".000Z", INSTANT)


def _fits(bucket: str, received_at: str) -> bool:
    after = _milliseconds(received_at) - _milliseconds(bucket.replace("Z", ".000Z"))
    return -5 * 60_000 <= after < 15 * 60_000


def _milliseconds(text: str) -> int:
    """Return a time as a number. The calendar repeats after 400 years, and date begins with the year 1."""
    year = int(text[:4])
    days = date(year or 400, int(text[5:7]), int(text[8:10])).toordinal() - (0 if year else 146_097)
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + int(text[20:23])


def vote_text(origin: str, payload: dict[str, Any], bucket: str) -> bytes:
    """Return the text that the vote in a payload signs. Errors are Flaw."""
    remark = {name: payload.get(name) or None for name in ("reason", "reason_code")}
    digest = sha(canonical_text(remark).encode()).hex()
    lines = [payload["approval_id"], payload["action_digest"], payload["vote"], digest]
    return _lines(["agentledger/vote/v1", origin, *lines], bucket)


def key_text(origin: str, account: str, credential: str, key: PasskeyKey, bucket: str) -> bytes:
    """Return the text that the registration of a voter key signs. Errors are Flaw."""
    return _lines(["agentledger/voter-key/v1", origin, account, credential, key.thumbprint], bucket)


def _lines(lines: list[str], bucket: str) -> bytes:
    need(is_bucket(bucket), "time", MALFORMED)
    need(all(line and "\n" not in line for line in lines), "line of the signed text", MALFORMED)
    return "".join(line + "\n" for line in [*lines, bucket]).encode()


class PasskeyKey:
    """A public key of a passkey: ES256, EdDSA or RS256."""

    def __init__(self, jwk: Any) -> None:
        """Check a JWK. Errors are Flaw."""
        need(is_object(jwk) and all(isinstance(v, str) for v in jwk.values()), "public_key", MALFORMED)
        kinds: dict[Any, Callable[[dict[str, str]], Verify]] = {"EC": _ec_key, "OKP": _ed_key, "RSA": _rsa_key}
        make = kinds.get(jwk.get("kty"))
        if make is None:
            raise Flaw("public_key: kty", MALFORMED)
        self.verify = make(jwk)
        self.thumbprint = base64url(sha(canonical_text(jwk).encode()))


def _ec_key(jwk: dict[str, str]) -> Verify:
    need(jwk.keys() == {"crv", "kty", "x", "y"} and jwk["crv"] == "P-256", "public_key: members", MALFORMED)
    raw_x, raw_y = unbase64url(jwk["x"]), unbase64url(jwk["y"])
    need(len(raw_x) == len(raw_y) == 32, "public_key: length", MALFORMED)
    x, y = int.from_bytes(raw_x), int.from_bytes(raw_y)
    on_curve = x < _P and y < _P and (y * y - (x * x * x - 3 * x + _B)) % _P == 0
    need(on_curve, "public_key: not on the curve", MALFORMED)
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()

    def verify(signature: bytes, message: bytes) -> bool:
        return _is_der(signature) and _counts(lambda: key.verify(signature, message, ec.ECDSA(SHA256())))

    return verify


def _counts(check: Callable[[], None]) -> bool:
    try:
        check()
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_der(raw: bytes) -> bool:
    """Return whether bytes are a SEQUENCE of two INTEGERs from 1 to n - 1 in DER."""
    if len(raw) < 2 or raw[0] != 0x30 or raw[1] >= 0x80 or raw[1] != len(raw) - 2:
        return False
    at = 2
    for _ in range(2):
        if len(raw) < at + 3 or raw[at] != 2 or not 1 <= raw[at + 1] <= 33:
            return False
        value = raw[at + 2 : at + 2 + raw[at + 1]]
        minimal = len(value) == raw[at + 1] and value[0] < 0x80 and (value[0] > 0 or len(value) > 1 and value[1] >= 0x80)
        if not minimal or not 1 <= int.from_bytes(value) < _N:
            return False
        at += 2 + len(value)
    return at == len(raw)


def _ed_key(jwk: dict[str, str]) -> Verify:
    need(jwk.keys() == {"crv", "kty", "x"} and jwk["crv"] == "Ed25519", "public_key: members", MALFORMED)
    raw = unbase64url(jwk["x"])
    try:
        ed25519.public_key(raw)
    except ed25519.BadKey as why:
        raise Flaw(f"public_key: {why}", MALFORMED) from None
    return lambda signature, message: ed25519.is_signature(raw, signature, message)


def _rsa_key(jwk: dict[str, str]) -> Verify:
    need(jwk.keys() == {"e", "kty", "n"} and jwk["e"] == "AQAB", "public_key: members", MALFORMED)
    raw = unbase64url(jwk["n"])
    n = int.from_bytes(raw)
    good = raw[:1] != b"\0" and 2048 <= n.bit_length() <= 4096 and n % 2 == 1
    need(good, "public_key: n", MALFORMED)
    key = rsa.RSAPublicNumbers(65537, n).public_key()

    def verify(signature: bytes, message: bytes) -> bool:
        whole = len(signature) == len(raw) and int.from_bytes(signature) < n
        return whole and _counts(lambda: key.verify(signature, message, padding.PKCS1v15(), SHA256()))

    return verify


@dataclass(frozen=True)
class Assertion:
    """A passkey's signature over a text."""

    data: bytes
    client: bytes
    credential: str
    signature: bytes
    time: str


@dataclass(frozen=True)
class Credential:
    """A passkey, as stated by the event that registered it."""

    id: str
    key: PasskeyKey
    rp_id: str
    web_origin: str


def read_assertion(value: Any) -> Assertion:
    """Parse an assertion. Errors are Flaw."""
    need(is_object(value) and value.keys() == _ASSERTION, "assertion: members", MALFORMED)
    need(is_bucket(value["time"]), "assertion: time", MALFORMED)
    data, client = unbase64url(value["authenticator_data"]), unbase64url(value["client_data_json"])
    credential, signature = unbase64url(value["credential_id"]), unbase64url(value["signature"])
    within = 1 <= len(client) <= 2048 and 1 <= len(credential) <= 1023 and 1 <= len(signature) <= 512
    need(len(data) == 37 and within, "assertion: length", MALFORMED)
    return Assertion(data, client, value["credential_id"], signature, value["time"])


def check_assertion(credential: Credential, text: bytes, a: Assertion, received_at: str) -> None:
    """Check that a credential made an assertion over a text, in an event received at a time. Errors are Flaw."""
    need(a.credential == credential.id, "credential_id")
    need(_fits(a.time, received_at), "time and received_at")
    _check_client_data(a.client, base64url(sha(text)), credential.web_origin)
    need(a.data[:32] == sha(credential.rp_id.encode()), "authenticator_data: rp_id")
    flags = a.data[32]
    good = flags & 0xE2 == 0 and flags & 0x05 == 0x05 and (not flags & 0x10 or bool(flags & 0x08))
    need(good, "authenticator_data: flags")
    need(credential.key.verify(a.signature, a.data + sha(a.client)), "signature of the passkey", MISMATCH)


def _check_client_data(raw: bytes, challenge: str, origin: str) -> None:
    try:
        client = parse_object(raw)
    except Malformed as why:
        raise Flaw("client_data_json", MALFORMED, str(why)) from None
    for name, want in (("type", "webauthn.get"), ("challenge", challenge), ("origin", origin)):
        need(client.get(name) == want, f"client_data_json: {name}")
    same_site = client.get("crossOrigin", False) is False and "topOrigin" not in client
    need(same_site, "client_data_json: crossOrigin, topOrigin")
