"""ML-DSA-44 verification (FIPS 204) with the empty context, for cosignatures of witnesses. Slow: about 100 ms."""

from __future__ import annotations

import functools
import hashlib

_Q, _D, _K, _L, _TAU = 8380417, 13, 4, 4, 39
_GAMMA1, _GAMMA2, _BETA, _OMEGA, _CHALLENGE = 2**17, 95232, 78, 80, 32
KEY_SIZE = 32 + _K * 320
SIGNATURE_SIZE = _CHALLENGE + _L * 576 + _OMEGA + _K


@functools.cache
def _zetas() -> tuple[int, ...]:
    return tuple(pow(1753, int(f"{i:08b}"[::-1], 2), _Q) for i in range(256))


_Polynomial = list[int]


def is_signature(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature is by the key (algorithms 3 and 8). Values of other lengths are no signature."""
    if len(key) != KEY_SIZE or len(signature) != SIGNATURE_SIZE:
        return False
    challenge = signature[:_CHALLENGE]
    z = [_GAMMA1 - n for n in _unpack(signature[_CHALLENGE : -_OMEGA - _K], 18)]
    hints = _read_hints(signature[-_OMEGA - _K :])
    if hints is None or max(abs(n) for n in z) >= _GAMMA1 - _BETA:
        return False
    packed = _high_bits_of_all(key, challenge, z, hints)
    mu = _shake(_shake(key, 64) + b"\0\0" + message, 64)
    return _shake(mu + packed, _CHALLENGE) == challenge


def _high_bits_of_all(key: bytes, challenge: bytes, z: _Polynomial, hints: list[set[int]]) -> bytes:
    seed, t1 = key[:32], _unpack(key[32:], 10)
    c = _ntt(_sample_challenge(challenge))
    parts = [_ntt(z[256 * s : 256 * s + 256]) for s in range(_L)]
    packed = 0
    for r in range(_K):
        t = _ntt([n << _D for n in t1[256 * r : 256 * r + 256]])
        row = [_sample_matrix_entry(seed + bytes([s, r])) for s in range(_L)]
        w = _inverse_ntt([sum(row[s][i] * parts[s][i] for s in range(_L)) - c[i] * t[i] for i in range(256)])
        for i in range(256):
            packed |= _high_bits(w[i], i in hints[r]) << 6 * (256 * r + i)
    return packed.to_bytes(_K * 192, "little")


def _shake(data: bytes, size: int) -> bytes:
    return hashlib.shake_256(data).digest(size)


def _unpack(data: bytes, bits: int) -> _Polynomial:
    """Parse little-endian numbers of the given number of bits (algorithm 18)."""
    whole = int.from_bytes(data, "little")
    mask = (1 << bits) - 1
    return [whole >> bits * i & mask for i in range(len(data) * 8 // bits)]


def _sample_matrix_entry(seed: bytes) -> _Polynomial:
    """Sample numbers below q (algorithm 30). The stream has 682 candidates for 256, nearly all below q."""
    stream = hashlib.shake_128(seed).digest(2048)
    found = [stream[i] | stream[i + 1] << 8 | (stream[i + 2] & 127) << 16 for i in range(0, 2046, 3)]
    return [n for n in found if n < _Q][:256]


def _sample_challenge(seed: bytes) -> _Polynomial:
    """Sample a polynomial with TAU coefficients of 1 or -1 (algorithm 29)."""
    stream = _shake(seed, 1024)
    signs, at, c = int.from_bytes(stream[:8], "little"), 8, [0] * 256
    for i in range(256 - _TAU, 256):
        while stream[at] > i:
            at += 1
        j, at = stream[at], at + 1
        c[i], c[j] = c[j], -1 if signs >> i + _TAU - 256 & 1 else 1
    return c


def _read_hints(data: bytes) -> list[set[int]] | None:
    """Parse the hints (algorithm 21). Return None if they are malformed."""
    hints: list[set[int]] = []
    begin = 0
    for end in data[_OMEGA:]:
        positions = list(data[begin:end])
        if not begin <= end <= _OMEGA or positions != sorted(set(positions)):
            return None
        hints.append(set(positions))
        begin = end
    return None if any(data[begin:_OMEGA]) else hints


def _ntt(polynomial: _Polynomial) -> _Polynomial:
    """Transform (algorithm 41)."""
    w, m, length = list(polynomial), 0, 128
    zetas = _zetas()
    while length:
        for start in range(0, 256, 2 * length):
            m += 1
            for j in range(start, start + length):
                t = zetas[m] * w[j + length] % _Q
                w[j], w[j + length] = (w[j] + t) % _Q, (w[j] - t) % _Q
        length //= 2
    return w


def _inverse_ntt(polynomial: _Polynomial) -> _Polynomial:
    """Transform back (algorithm 42)."""
    w, m, length = list(polynomial), 256, 1
    zetas = _zetas()
    while length < 256:
        for start in range(0, 256, 2 * length):
            m -= 1
            for j in range(start, start + length):
                w[j], w[j + length] = (w[j] + w[j + length]) % _Q, zetas[m] * (w[j + length] - w[j]) % _Q
        length *= 2
    inverse = pow(256, -1, _Q)
    return [n * inverse % _Q for n in w]


def _high_bits(r: int, hint: bool) -> int:
    """Return the high bits of a number, corrected by its hint (algorithms 36 and 40)."""
    low = r % (2 * _GAMMA2)
    if low > _GAMMA2:
        low -= 2 * _GAMMA2
    high = (r - low) // (2 * _GAMMA2)
    if r - low == _Q - 1:
        high, low = 0, low - 1
    if not hint:
        return high % 44
    return (high + (1 if low > 0 else -1)) % 44
