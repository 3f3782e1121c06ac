"""Encodings with one accepted spelling: base64, decimal numbers, hashes and Multikeys."""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MAX_NATURAL = 2**53 - 1
MAX_SIZE = 2**63 - 1


def sha(*parts: bytes) -> bytes:
    """Return the SHA-256 of all parts together."""
    return sha256(b"".join(parts)).digest()


def base64_bytes(text: str) -> bytes | None:
    """Return the bytes of standard base64 in its one spelling, or None for another text."""
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def base64_text(raw: bytes) -> str:
    """Return standard base64 with padding."""
    return base64.b64encode(raw).decode()


def decimal(text: str, most: int = MAX_SIZE) -> int | None:
    """Return a decimal number of at most the given size without sign and leading zeros, or None for another text."""
    if not _DECIMAL.fullmatch(text) or int(text) > most:
        return None
    return int(text)


def hash_bytes(text: str) -> bytes | None:
    """Return the 32 bytes of a hash in lower-case hex, or None for another text."""
    return bytes.fromhex(text) if _HASH.fullmatch(text) else None


def multikey_bytes(text: str) -> bytes | None:
    """Return the 32 bytes of an Ed25519 Multikey (z and base58btc), or None for another text."""
    if len(text) != 48 or text[0] != "z" or any(c not in _BASE58 for c in text[1:]):
        return None
    number = 0
    for c in text[1:]:
        number = number * 58 + _BASE58.index(c)
    if number >> (34 * 8):
        return None
    raw = number.to_bytes(34, "big")
    return raw[2:] if raw[:2] == b"\xed\x01" and multikey_text(raw[2:]) == text else None


def multikey_text(key: bytes) -> str:
    """Return the Multikey of an Ed25519 public key of 32 bytes."""
    number, text = int.from_bytes(b"\xed\x01" + key, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return "z" + text
