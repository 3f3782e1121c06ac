"""Votes that approvers signed with their passkeys, by docs/signed-votes.md alone. pack.py uses it."""
import base64, datetime, re
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from strict import attempt, canonical, ijson, need, signed
from verify import ID, OBJECT, TEXT, has_form, or_null, real_day, sha

KIND, NAME = "ledger_voter_key", '"[A-Za-z0-9_-]{1,1364}"'
BUCKET, ORIGIN = r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9][05]:00Z"', r"(https?)://([a-z0-9._-]{1,253})(:[1-9][0-9]{0,4})?"
ASSERTION = dict(authenticator_data=TEXT, client_data_json=TEXT, credential_id=TEXT, signature=TEXT, time=BUCKET)
RETIRED = dict(transition='"retired"', account_id=ID, credential_id=NAME)
REGISTERED = dict(transition='"registered"', account_id=ID, credential_id=NAME, public_key=OBJECT, rp_id=TEXT, web_origin=TEXT, possession=OBJECT,
    consent=or_null(OBJECT))

def unbase64url(text, least, most):
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(re.fullmatch("[A-Za-z0-9_-]*", text, re.A) and base64url(raw) == text and least <= len(raw) <= most, "base64url, or length")
    return raw

def base64url(raw): return base64.urlsafe_b64encode(raw).decode().rstrip("=")

def clock(text):                                    # seconds; the calendar repeats after 400 years, and datetime begins with year 1
    text, shift = (text[:4].replace("0000", "0400") + text[4:], 146097 * 86400) if text[:4] == "0000" else (text, 0)
    return (datetime.datetime.fromisoformat(text[:-1]) - datetime.datetime(1, 1, 1)).total_seconds() - shift

def lines(*texts):
    need(all(t and "\n" not in t for t in texts), "a line of the signed text")
    return "".join(t + "\n" for t in texts).encode()

def thumbprint(jwk): return base64url(sha(canonical(jwk).encode()))

def verify_es256(jwk, signature, message):
    has_form(jwk, dict(crv='"P-256"', kty='"EC"', x=TEXT, y=TEXT))
    x, y = (int.from_bytes(unbase64url(jwk[n], 32, 32)) for n in "xy")
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()  # refuses a point that is not on the curve
    r, s = decode_dss_signature(signature)
    need(r > 0 and s > 0 and encode_dss_signature(r, s) == signature, "signature: not strict DER")
    key.verify(signature, message, ec.ECDSA(SHA256()))

def verify_eddsa(jwk, signature, message):
    has_form(jwk, dict(crv='"Ed25519"', kty='"OKP"', x=TEXT))
    signed(unbase64url(jwk["x"], 32, 32), signature, message)

def verify_rs256(jwk, signature, message):
    has_form(jwk, dict(e='"AQAB"', kty='"RSA"', n=TEXT))
    raw = unbase64url(jwk["n"], 256, 512)
    n = int.from_bytes(raw)
    need(raw[0] and n.bit_length() >= 2048 and n % 2 and len(signature) == len(raw), "public_key: n, or length of the signature")
    rsa.RSAPublicNumbers(65537, n).public_key().verify(signature, message, padding.PKCS1v15(), SHA256())

ALGORITHMS = dict(EC=verify_es256, OKP=verify_eddsa, RSA=verify_rs256)

def assertion(a):
    has_form(a, ASSERTION)
    real_day(a["time"].replace("Z", ".000Z"))
    return a

def check(passkey, text, a, received_at):           # passkey is the payload that registered it
    need(a["credential_id"] == passkey["credential_id"], "another credential")
    unbase64url(a["credential_id"], 1, 1023)
    need(-300 <= clock(received_at) - clock(a["time"]) < 900, "time bucket")
    data, client_text = unbase64url(a["authenticator_data"], 37, 37), unbase64url(a["client_data_json"], 1, 2048)
    client = ijson(client_text.decode())
    need(isinstance(client, dict) and client["type"] == "webauthn.get" and client["challenge"] == base64url(sha(text)), "client data: type or challenge")
    need(client["origin"] == passkey["web_origin"] and client.get("crossOrigin", False) is False and "topOrigin" not in client, "client data: origin")
    flags = data[32]
    need(data[:32] == sha(passkey["rp_id"].encode()) and flags & 5 == 5 and not flags & 0xe2 and (flags & 8 or not flags & 16), "authenticator data")
    ALGORITHMS[passkey["public_key"]["kty"]](passkey["public_key"], unbase64url(a["signature"], 1, 512), data + sha(client_text))

class Voters:
    """The events of voters.ndjson, by account and credential: pairs of a log index and of the payload, None for a retirement."""
    def __init__(self, origin): self.origin, self.events, self.used, self.log, self.words, self.report = origin, {}, {}, [], {}, []

    def registered(self, name, before):
        known = [p for at, p in self.events.get(name, ()) if at < before]
        need(known and known[-1], "voter key: not registered, or retired")
        return known[-1]                            # the payload that registered it

    def add(self, at, p, received_at):
        need(not self.log or at > self.log[-1][0], "voters: order")
        name, consent = (p["account_id"], p["credential_id"]), None
        if p.get("transition") == "retired":
            has_form(p, RETIRED)
            unbase64url(p["credential_id"], 1, 1023)
            p = None
        else:
            has_form(p, REGISTERED)
            page = re.fullmatch(ORIGIN, p["web_origin"], re.A)
            need(page and (page[1] == "https" or page[2] == "localhost") and p["rp_id"] and ("." + page[2]).endswith("." + p["rp_id"]), "voters: page")
            text = lambda a: lines("agentledger/voter-key/v1", self.origin, *name, thumbprint(p["public_key"]), a["time"])
            check(p, text(assertion(p["possession"])), p["possession"], received_at)
            own = "%s, registered %s (entry %d)" % (thumbprint(p["public_key"]), received_at, at)
            words = own, " without the consent of another passkey: whose passkey it is, is an unverified operator claim"
            if p["consent"] is not None:
                consent = name[0], assertion(p["consent"])["credential_id"]
                need(consent != name, "voters: consent by itself")
                by = self.registered(consent, at)
                check(by, text(p["consent"]), p["consent"], received_at)
                words = own, ", with the consent of the passkey " + self.words[id(by)][0]
            self.words[id(p)] = words
        self.events.setdefault(name, []).append((at, p))
        self.log.append((at, name, p is None, consent))

    def vote(self, at, e, received_at):             # of an event about an approval
        p, account = e["payload"], e["actor_principal"].split("/")[0]
        form = dict(a=ID, b=ID, v='"(approve|deny)"')
        names = dict(a=account, b=p.get("approval_id"), v=p.get("vote"))
        line = "vote of %(a)s on %(b)s: %(v)s, " % names
        if "signed" not in p:
            if attempt(has_form, names, form): self.report.append(line + "unsigned: an unverified operator claim")
            return
        has_form(names, form)
        remark = {}
        for n in "reason", "reason_code":
            need(p.get(n) is None or isinstance(p[n], str), n)
            remark[n] = p.get(n) or None
        a, digest = assertion(p["signed"]), sha(canonical(remark).encode()).hex()
        text = lines("agentledger/vote/v1", self.origin, p["approval_id"], p["action_digest"], p["vote"], digest, a["time"])
        by = self.registered((account, a["credential_id"]), at)
        check(by, text, a, received_at)
        self.report.append(line + "signed by the passkey " + "".join(self.words[id(by)]))
        self.used[account, a["credential_id"]] = max(at, self.used.get((account, a["credential_id"]), 0))

    def done(self, shown):                          # shown: pairs of a log index and of the payload of shown events about voter keys
        for at, name, retired, consent in reversed(self.log):
            need(retired or self.used.get(name, 0) > at, "voters: a registration that no vote needs")
            if consent: self.used[consent] = max(at, self.used.get(consent, 0))
        listed = {at for at, *_ in self.log}
        need(all(name in self.used for _, name, *_ in self.log), "voters: a retirement that no vote needs")
        for at, p in shown:
            if not all(isinstance(p.get(n), str) for n in RETIRED) or at in listed: continue
            until = self.used.get((p["account_id"], p["credential_id"]))
            need(until is None or p["transition"] != "retired" and (p["transition"] != "registered" or at >= until), "voters: an event left out")
