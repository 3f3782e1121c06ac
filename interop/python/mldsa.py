"""ML-DSA-44 verification (FIPS 204) with the empty context, in Python's standard library. For checks, not for speed."""
import hashlib

Q, D, K, L, TAU, GAMMA1, GAMMA2, BETA, OMEGA, CHALLENGE = 8380417, 13, 4, 4, 39, 2**17, 95232, 78, 80, 32
KEY_SIZE, SIGNATURE_SIZE = 32 + K * 320, CHALLENGE + L * 576 + OMEGA + K
ZETAS = [pow(1753, int(f"{i:08b}"[::-1], 2), Q) for i in range(256)]

def shake256(data, size): return hashlib.shake_256(data).digest(size)

def unpack(data, bits):                             # algorithm 18: little-endian numbers of so many bits
    whole = int.from_bytes(data, "little")
    return [whole >> bits * i & (1 << bits) - 1 for i in range(len(data) * 8 // bits)]

def sample_matrix_entry(seed):                      # algorithm 30
    stream = hashlib.shake_128(seed).digest(2048)   # 682 candidates for 256: nearly all are below Q
    found = [stream[i] | stream[i + 1] << 8 | (stream[i + 2] & 127) << 16 for i in range(0, 2046, 3)]
    return [n for n in found if n < Q][:256]

def sample_challenge(seed):                         # algorithm 29
    stream = shake256(seed, 1024)
    signs, at, c = int.from_bytes(stream[:8], "little"), 8, [0] * 256
    for i in range(256 - TAU, 256):
        while stream[at] > i: at += 1
        j, at = stream[at], at + 1
        c[i], c[j] = c[j], -1 if signs >> i + TAU - 256 & 1 else 1
    return c

def hints(data):                                    # algorithm 21; None if it is malformed
    ones, begin = [], 0
    for end in data[OMEGA:]:
        positions = list(data[begin:end])
        if not begin <= end <= OMEGA or positions != sorted(set(positions)): return None
        ones, begin = ones + [set(positions)], end
    return None if any(data[begin:OMEGA]) else ones

def ntt(w):                                         # algorithm 41
    w, m, length = list(w), 0, 128
    while length:
        for start in range(0, 256, 2 * length):
            m += 1
            for j in range(start, start + length):
                t = ZETAS[m] * w[j + length] % Q
                w[j], w[j + length] = (w[j] + t) % Q, (w[j] - t) % Q
        length //= 2
    return w

def inverse_ntt(w):                                 # algorithm 42
    w, m, length = list(w), 256, 1
    while length < 256:
        for start in range(0, 256, 2 * length):
            m -= 1
            for j in range(start, start + length):
                w[j], w[j + length] = (w[j] + w[j + length]) % Q, ZETAS[m] * (w[j + length] - w[j]) % Q
        length *= 2
    return [n * pow(256, -1, Q) % Q for n in w]

def high_bits(r, hint):                             # algorithms 36 and 40
    low = r % (2 * GAMMA2)
    if low > GAMMA2: low -= 2 * GAMMA2
    high = (r - low) // (2 * GAMMA2)
    if r - low == Q - 1: high, low = 0, low - 1
    return (high + (1 if low > 0 else -1) if hint else high) % 44

def verify(key, message, signature):                # algorithms 3 and 8
    if len(key) != KEY_SIZE or len(signature) != SIGNATURE_SIZE: return False
    rho, t1 = key[:32], unpack(key[32:], 10)
    challenge, z = signature[:CHALLENGE], [GAMMA1 - n for n in unpack(signature[CHALLENGE:-OMEGA - K], 18)]
    ones = hints(signature[-OMEGA - K:])
    if ones is None or max(map(abs, z)) >= GAMMA1 - BETA: return False
    c, z = ntt(sample_challenge(challenge)), [ntt(z[256 * s:256 * s + 256]) for s in range(L)]
    packed = 0
    for r in range(K):
        t = ntt([n << D for n in t1[256 * r:256 * r + 256]])
        row = [sample_matrix_entry(rho + bytes([s, r])) for s in range(L)]
        w = inverse_ntt([sum(row[s][i] * z[s][i] for s in range(L)) - c[i] * t[i] for i in range(256)])
        for i in range(256): packed |= high_bits(w[i], i in ones[r]) << 6 * (256 * r + i)
    mu = shake256(shake256(key, 64) + b"\0\0" + message, 64)
    return shake256(mu + packed.to_bytes(K * 192, "little"), CHALLENGE) == challenge
