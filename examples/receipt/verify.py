#!/usr/bin/env python3
"""Verifies the COSE receipt of one event, with nothing of agentledger: the Python
standard library, and openssl for the signature.

    verify.py https://log.example acme evt-4 'log.example/o/…+995e7999+AY…'

The last argument is the log's key (vkey), from a source that you trust. The exit
status is 0 if the receipt proves the entry, and 1 otherwise.
"""

import base64, hashlib, json, subprocess, sys, tempfile, urllib.request


def fetch(url, media):
    request = urllib.request.Request(url, headers={"Accept": media})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()
    except OSError as e:
        sys.exit(f"{url}: {e}")


def decode(b):
    """Decodes one CBOR item and returns it with the bytes after it."""
    major, n, rest = b[0] >> 5, b[0] & 31, b[1:]
    if 24 <= n <= 27:
        width = 1 << (n - 24)
        n, rest = int.from_bytes(rest[:width], "big"), rest[width:]
    if major == 0:
        return n, rest
    if major == 1:
        return -1 - n, rest
    if major in (2, 3):
        item = rest[:n]
        return (item if major == 2 else item.decode()), rest[n:]
    if major == 7:
        return None, rest  # the only simple value in a receipt is null
    items = []
    for _ in range({4: n, 5: 2 * n, 6: 1}[major]):
        item, rest = decode(rest)
        items.append(item)
    if major == 5:
        return dict(zip(items[::2], items[1::2])), rest
    return (items if major == 4 else (n, items[0])), rest


def encode(major, b):
    """Encodes a string that is shorter than 64 KiB."""
    n = len(b)
    head = [n] if n < 24 else [24, n] if n < 256 else [25, n >> 8, n & 255]
    return bytes([major << 5 | head[0], *head[1:]]) + b


def root_of(leaf, index, size, path):
    """RFC 9162 section 2.1.3.2."""
    assert index < size
    node, last = hashlib.sha256(b"\0" + leaf).digest(), size - 1
    for sibling in path:
        assert last > 0
        if index & 1 or index == last:
            node = hashlib.sha256(b"\1" + sibling + node).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = hashlib.sha256(b"\1" + node + sibling).digest()
        index, last = index >> 1, last >> 1
    assert last == 0
    return node


def signed_by(public, message, signature):
    der = bytes.fromhex("302a300506032b6570032100") + public
    pem = "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n" % base64.b64encode(der).decode()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {"key": pem.encode(), "message": message, "signature": signature}.items():
            with open(folder + "/" + name, "wb") as f:
                f.write(content)
        return subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "key", "-in", "message",
            "-sigfile", "signature"], cwd=folder, stdout=subprocess.DEVNULL).returncode == 0


service, slug, event, vkey = sys.argv[1:]
name, key_id, key = vkey.split("+", 2)
address = f"{service}/v1/public/orgs/{slug}/verify/{event}"
entry = json.loads(fetch(address, "application/json"))["entry"].encode()

(tag, (protected, unprotected, payload, signature)), rest = decode(fetch(address, "application/cose"))
header, _ = decode(protected)
(size, index, path), _ = decode(unprotected[396][-1][0])
root = root_of(entry, index, size, path)
message = b"\x84" + encode(3, b"Signature1") + encode(2, protected) + encode(2, b"") + encode(2, root)

if (tag, payload, rest, header[1], header[395]) != (18, None, b"", -8, 1):
    sys.exit("not a receipt that this program reads")
if header[15][1] != name or header[4].hex() != key_id:
    sys.exit("signed by another key: " + header[15][1] + "+" + header[4].hex())
if header[15][2] != f"tree {size}" or json.loads(entry)["seq"] != index + 1:
    sys.exit("not proved: the entry has another place")
if not signed_by(base64.b64decode(key)[1:], message, signature):
    sys.exit("not proved: the key did not sign the root that the path leads to")
print(f"proved: entry {index} in a tree of {size} entries of {name}")
