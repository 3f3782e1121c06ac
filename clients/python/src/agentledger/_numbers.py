"""Numbers of JSON: IEEE doubles, written as RFC 8785 requires, and never changed silently.

- An integer literal (no fraction, no exponent) has the value of its canonical form.
- Any other literal has at most 17 significant digits, not counting leading and trailing zeros.
- No literal becomes infinite, and only zero becomes zero.
"""

from __future__ import annotations

import re

MAX_INTEGER = 2**53
"""Integers up to this absolute value are doubles, and their neighbours are other doubles."""

NOT_EXACT = "is an integer that canonical JSON (RFC 8785) would change: give it as a string"
TOO_PRECISE = "has more than 17 significant digits: round it or give it as a string"
TOO_LARGE = "is too large for a JSON number: give it as a string"
TOO_SMALL = "is too close to zero for a JSON number: give 0 or a string"

TOO_LONG = "has more than 128 significant digits or an exponent beyond 9999: give it as a string"

MAX_DIGITS = 128
MAX_EXPONENT = 9999
"""Limits of a number that is kept exactly: significant digits, and the exponent in scientific notation."""

_LITERAL = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_EXPONENT_BOUND = 10**15


def double_text(value: float) -> str:
    """Return the canonical form of a finite double (RFC 8785, section 3.2.2.3)."""
    if value == 0:
        return "0"
    sign, digits, point = _shortest(value)
    size = len(digits)
    if size <= point <= 21:
        text = digits + "0" * (point - size)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if size > 1 else "") + f"e{point - 1:+d}"
    return sign + text


def _shortest(value: float) -> tuple[str, str, int]:
    """Return sign, digits and point: the value is 0.digits times ten to the power of point."""
    text = repr(value)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    kept = digits.lstrip("0")
    point -= len(digits) - len(kept)
    return sign, kept.rstrip("0"), point


def read_literal(text: str) -> int | float | str:
    """Return the value of a number literal, or the reason for rejecting it as a text.

    An integer is an int up to MAX_INTEGER and a float beyond, so that both have one canonical form.
    """
    match = _LITERAL.fullmatch(text)
    if match is None:
        return "is not a JSON number"
    whole, fraction, exponent = match.groups()
    is_integer = fraction is None and exponent is None
    digits = (whole + (fraction or "")).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    if len(significant) > 17:
        return NOT_EXACT if is_integer else TOO_PRECISE
    value = _round(significant, len(digits) - len(significant) - len(fraction or ""), exponent or "0", text[0] == "-")
    if isinstance(value, str):
        return value
    number = float(value)
    if is_integer and _digits_of(number) != (significant, len(whole)):
        return NOT_EXACT
    return int(number) if number.is_integer() and abs(number) <= MAX_INTEGER else number


def _round(significant: str, shift: int, exponent: str, negative: bool) -> float | str:
    power = int(exponent[:17]) if len(exponent) > 17 else int(exponent)
    power = max(-_EXPONENT_BOUND, min(power, _EXPONENT_BOUND)) + shift
    if power + len(significant) > 310:
        return TOO_LARGE
    if power + len(significant) < -330:
        return TOO_SMALL
    value = float(f"{significant}e{power}")
    if value in (float("inf"), 0.0):
        return TOO_LARGE if value else TOO_SMALL
    return -value if negative else value


def _digits_of(value: float) -> tuple[str, int]:
    _, digits, point = _shortest(value)
    return digits, point


def read_exact(text: str) -> tuple[str, bool] | None:
    """Return the exact form of a number literal, and whether canonical JSON can carry it; None beyond the limits.

    Errors are ValueError for a text that is not a number literal. The rules are in docs/spec/signing.md, Exact numbers.
    """
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise ValueError("not a JSON number")
    whole, fraction, exponent = match.groups()
    all_digits = whole + (fraction or "")
    digits = all_digits.lstrip("0")
    if not digits:
        return "0", True
    power = exponent or "0"
    if len(power) > 17:
        power = power[0] + "9" * 16 if power.lstrip("+-").strip("0") else "0"
    point = len(whole) - (len(all_digits) - len(digits)) + int(power)
    digits = digits.rstrip("0")
    if len(digits) > MAX_DIGITS or abs(point - 1) > MAX_EXPONENT:
        return None
    sign = "-" if text[0] == "-" else ""
    double = float(f"{sign}0.{digits}e{point}")
    if double not in (float("inf"), float("-inf"), 0.0) and _digits_of(double) == (digits, point):
        return double_text(double), True
    return sign + _exact_digits(digits, point), False


def _exact_digits(digits: str, point: int) -> str:
    size = len(digits)
    if not -6 < point <= MAX_DIGITS:
        return digits[0] + ("." + digits[1:] if size > 1 else "") + f"e{point - 1:+d}"
    if point <= 0:
        return "0." + "0" * -point + digits
    if size <= point:
        return digits + "0" * (point - size)
    return digits[:point] + "." + digits[point:]
