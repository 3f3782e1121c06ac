"""Verifier keys of logs and witnesses, as specified by C2SP signed-note and tlog-cosignature."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from .. import _ed25519 as ed25519
from ._encoding import base64_bytes, base64_text, sha
from ._flaw import MALFORMED, Flaw, need
from ._mldsa import KEY_SIZE

LOG_TYPE = 1
COSIGNATURE_TYPE = 4
MLDSA_TYPE = 6
MAX_NAME = 255
"""Maximum length in bytes of a key name, and so of an origin."""

_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}


@dataclass(frozen=True)
class VerifierKey:
    """A named public key. typed is the signature type and the key, key_id the first bytes of a hash of all."""

    name: str
    key_id: bytes
    typed: bytes

    def __str__(self) -> str:
        return f"{self.signer}+{base64_text(self.typed)}"

    @property
    def signer(self) -> str:
        """The display name of the key: name and key ID."""
        return f"{self.name}+{self.key_id.hex()}"

    @property
    def public(self) -> bytes:
        """The public key without its type."""
        return self.typed[1:]

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether an Ed25519 signature of this key counts."""
        return ed25519.is_signature(self.public, signature, message)


def is_key_name(name: str) -> bool:
    """Return whether a text can be the name of a key: not empty, no white space, plus or control character."""
    return bool(name) and not any(c == "+" or c in _SPACES or unicodedata.category(c) in ("Cc", "Cs") for c in name)


def parse_log_key(vkey: str) -> VerifierKey:
    """Return the verifier key of a log. Errors are Flaw."""
    key = _parse(vkey, LOG_TYPE, 32)
    _check_point(key)
    return key


def parse_witness_key(vkey: str) -> VerifierKey:
    """Return the verifier key of a witness, Ed25519 or ML-DSA-44. Errors are Flaw."""
    try:
        return _parse(vkey, MLDSA_TYPE, KEY_SIZE)
    except Flaw:
        key = _parse(vkey, COSIGNATURE_TYPE, 32)
    _check_point(key)
    return key


def _check_point(key: VerifierKey) -> None:
    try:
        ed25519.public_key(key.public)
    except ed25519.BadKey as why:
        raise Flaw("parse note key: public key", MALFORMED, str(why)) from None


def _parse(vkey: str, kind: int, size: int) -> VerifierKey:
    name, _, rest = vkey.partition("+")
    _, _, encoded = rest.partition("+")
    need(len(encoded) == (1 + size + 2) // 3 * 4, "parse note key: length", MALFORMED)
    typed = base64_bytes(encoded)
    if typed is None or len(typed) != 1 + size or typed[0] != kind:
        raise Flaw("parse note key: signature type", MALFORMED)
    if not is_key_name(name) or len(name.encode()) > MAX_NAME:
        raise Flaw("parse note key: name: note key: name", MALFORMED)
    key = VerifierKey(name, sha(name.encode(), b"\n", typed)[:4], typed)
    need(str(key) == vkey, "parse note key: key hash", MALFORMED)
    return key
