"""What Python's libraries leave open, decided as the contract of agentledger logs has it: which Ed25519 keys and signatures count,
which JSON texts are one value in one way, and their RFC 8785 form. Whatever is refused raises one of ERRORS.
"""
import base64, functools, json, re
from decimal import Decimal
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

class Refused(Exception): pass
ERRORS = (Refused, InvalidSignature, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

def need(ok, why):
    if not ok: raise Refused(why)

def attempt(call, *arguments):                      # what it returns, True for nothing, False if it refuses
    try: return call(*arguments) or True
    except ERRORS: return False

def unbase64(text, size=None):                      # one spelling, with padding
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text and size in (None, len(raw)), "base64")
    return raw

def decimal(text, limit=2**63 - 1):
    need(re.fullmatch("0|[1-9][0-9]{0,19}", text, re.A) and int(text) <= limit, "number")
    return int(text)

# --- Ed25519: keys of the prime-order subgroup in their one encoding; no R of small order.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Y8 = int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little")
SMALL = {0, 1, P - 1, Y8, P - Y8}                   # y of the points of small order

def add(p, q):                                      # the addition law of RFC 8032 section 5.1.4, affine
    (x1, y1), (x2, y2), product = p, q, D * p[0] * q[0] * p[1] * q[1]
    return (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P

@functools.lru_cache(None)
def public_key(raw):
    n = int.from_bytes(raw, "little")
    y, sign = n % 2**255, n >> 255
    need(len(raw) == 32 and y < P and y not in SMALL, "key: length, not canonical, or of small order")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square: x = x * pow(2, (P - 1) // 4, P) % P
    need(x * x % P == square, "key: not on the curve")
    point, multiple = (x if x % 2 == sign else P - x, y), (0, 1)
    for bit in bin(L)[2:]:
        multiple = add(multiple, multiple)
        if bit == "1": multiple = add(multiple, point)
    need(multiple == (0, 1), "key: with a torsion component")
    return Ed25519PublicKey.from_public_bytes(raw)

def signed(key, signature, message):
    need(len(signature) == 64 and int.from_bytes(signature[:32], "little") % 2**255 % P not in SMALL, "signature: length, or R of small order")
    public_key(key).verify(signature, message)

# --- I-JSON with the number rule, and RFC 8785.
def number_text(f):
    if f == 0: return "0"
    sign, digits, exponent = Decimal(repr(f)).as_tuple()
    s = "".join(map(str, digits))
    n, s = len(s) + exponent, s.rstrip("0")         # 0.s times 10^n
    if len(s) <= n <= 21: text = s + "0" * (n - len(s))
    elif 0 < n <= 21: text = s[:n] + "." + s[n:]
    elif -6 < n <= 0: text = "0." + "0" * -n + s
    else: text = s[0] + ("." + s[1:] if s[1:] else "") + "e" + ("+" if n > 0 else "-") + str(abs(n - 1))
    return "-" * sign + text

def number(text):
    f, digits = float(text), re.sub("[eE].*|[-.]", "", text).strip("0")
    need(text.isascii() and abs(f) != float("inf") and (f != 0 or not digits), "number beyond doubles")
    kept, whole = number_text(f), "-?[0-9]+"
    need(Decimal(kept) == Decimal(text) if re.fullmatch(whole, text) else len(digits) <= 17, "number that is not exact, or of too many digits")
    return int(kept) if re.fullmatch(whole, kept) else f

def members(pairs):
    need(len(dict(pairs)) == len(pairs), "member twice")
    return dict(pairs)

def never(text): raise Refused("literal")

def ijson(text):
    value = json.loads(text, object_pairs_hook=members, parse_int=number, parse_float=number, parse_constant=never)
    canonical(value).encode()                       # no lone surrogates, no great depth
    return value

def canonical(v, depth=1):
    if v is None or isinstance(v, (bool, str)): return json.dumps(v, ensure_ascii=False)
    if isinstance(v, (int, float)): return number_text(float(v))
    need(depth <= 64, "depth")
    if isinstance(v, list): return "[" + ",".join(canonical(e, depth + 1) for e in v) + "]"
    names = sorted(v, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(canonical(n) + ":" + canonical(v[n], depth + 1) for n in names) + "}"
