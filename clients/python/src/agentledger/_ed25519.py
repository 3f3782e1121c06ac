"""Ed25519 by the rule of the service and its verifier (docs/spec/bundle.md, Ed25519).

- A public key is the canonical encoding of a point of the prime-order subgroup other than the identity.
- R of a signature is not of small order, S is below the order of the group, and the equation has no cofactor.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_Y8 = int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little")
_SMALL = frozenset((0, 1, _P - 1, _Y8, _P - _Y8))
_ROOT = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]


class BadKey(ValueError):
    """32 bytes that no verifier of these logs accepts as a public key. The text contains the reason."""


@lru_cache(maxsize=1024)
def public_key(raw: bytes) -> Ed25519PublicKey:
    """Return the public key of 32 bytes that count as one. Errors are BadKey."""
    if len(raw) != 32:
        raise BadKey("wrong length")
    number = int.from_bytes(raw, "little")
    y, sign = number % 2**255, number >> 255
    x = _x_of(y, sign)
    if x is None:
        raise BadKey("not the canonical encoding of a curve point")
    if y in _SMALL:
        raise BadKey("point of small order")
    if not _is_identity(_multiple(_L, (x, y, 1, x * y % _P))):
        raise BadKey("point outside of the prime-order subgroup")
    return Ed25519PublicKey.from_public_bytes(raw)


def is_signature(raw_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature counts for a public key that counts. Errors are BadKey."""
    key = public_key(raw_key)
    if len(signature) != 64 or int.from_bytes(signature[32:], "little") >= _L:
        return False
    if int.from_bytes(signature[:32], "little") % 2**255 % _P in _SMALL:
        return False
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _x_of(y: int, sign: int) -> int | None:
    """Return x of the point with this y and sign (RFC 8032, section 5.1.3), or None for a non-canonical encoding."""
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT % _P
    if x * x % _P != square or (x == 0 and sign):
        return None
    return x if x % 2 == sign else _P - x


def _add(a: _Point, b: _Point) -> _Point:
    """Add two points in extended coordinates (RFC 8032, section 5.1.4)."""
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e = (y1 + x1) * (y2 + x2) - (y1 - x1) * (y2 - x2)
    h = (y1 + x1) * (y2 + x2) + (y1 - x1) * (y2 - x2)
    c, d = 2 * _D * t1 * t2, 2 * z1 * z2
    f, g = d - c, d + c
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _multiple(n: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    for bit in bin(n)[2:]:
        result = _add(result, result)
        if bit == "1":
            result = _add(result, point)
    return result


def _is_identity(point: _Point) -> bool:
    x, y, z, _ = point
    return x == 0 and (y - z) % _P == 0
