package signedvote

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"math/big"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Bounds of an RSA modulus in bits.
const (
	minRSA = 2048
	maxRSA = 4096
)

const rsaExponent = 65537

// jwk is the public key in the form of RFC 7517. Each of the three forms has exactly the members of its thumbprint (RFC
// 7638), so its canonical form is also the input of the thumbprint.
type jwk struct {
	Curve    string `json:"crv,omitzero"`
	Exponent string `json:"e,omitzero"`
	Type     string `json:"kty"`
	Modulus  Bytes  `json:"n,omitzero"`
	X        Bytes  `json:"x,omitzero"`
	Y        Bytes  `json:"y,omitzero"`
}

// Key is a checked public key of a passkey: ES256, EdDSA or RS256. The zero value verifies nothing.
type Key struct {
	text    string // canonical JWK
	ecdsa   *ecdsa.PublicKey
	ed25519 edkey.Public
	rsa     *rsa.PublicKey
}

// ParseKey parses a JWK in canonical form (RFC 8785) with exactly the members of its type. Its
// error wraps verify.ErrMalformed.
func ParseKey(text []byte) (Key, error) {
	k := Key{text: string(text)}
	j, err := parseExact[jwk](text)
	if err == nil {
		switch {
		case j.Type == "EC" && j.Curve == "P-256" && len(j.X) == 32 && len(j.Y) == 32 && j.Exponent == "" && j.Modulus == nil:
			point := append(append([]byte{4}, j.X...), j.Y...)
			k.ecdsa, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		case j.Type == "OKP" && j.Curve == "Ed25519" && j.X != nil && j.Y == nil && j.Exponent == "" && j.Modulus == nil:
			k.ed25519, err = edkey.ParsePublic(j.X)
		case j.Type == "RSA" && j.Exponent == "AQAB" && j.Curve == "" && j.X == nil && j.Y == nil:
			k.rsa = &rsa.PublicKey{N: new(big.Int).SetBytes(j.Modulus), E: rsaExponent}
			if bits := k.rsa.N.BitLen(); bits < minRSA || bits > maxRSA || len(j.Modulus) != k.rsa.Size() || k.rsa.N.Bit(0) == 0 {
				err = fmt.Errorf("n: %w", verify.ErrMalformed)
			}
		default:
			err = fmt.Errorf("none of the three types: %w", verify.ErrMalformed)
		}
	}
	if err != nil {
		return Key{}, fmt.Errorf("public_key: %w: %w", verify.ErrMalformed, err)
	}
	return k, nil
}

// NewKey returns the key for a public key of the standard library: *ecdsa.PublicKey,
// ed25519.PublicKey or *rsa.PublicKey. Its error wraps verify.ErrMalformed.
func NewKey(public crypto.PublicKey) (Key, error) {
	var j jwk
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		point, err := p.Bytes()
		if err != nil || p.Curve != elliptic.P256() {
			return Key{}, fmt.Errorf("public_key: curve: %w", verify.ErrMalformed)
		}
		j = jwk{Type: "EC", Curve: "P-256", X: point[1:33], Y: point[33:]}
	case ed25519.PublicKey:
		j = jwk{Type: "OKP", Curve: "Ed25519", X: Bytes(p)}
	case *rsa.PublicKey:
		if p.E != rsaExponent || p.N == nil {
			return Key{}, fmt.Errorf("public_key: e: %w", verify.ErrMalformed)
		}
		j = jwk{Type: "RSA", Exponent: "AQAB", Modulus: p.N.Bytes()}
	default:
		return Key{}, fmt.Errorf("public_key: none of the three types: %w", verify.ErrMalformed)
	}
	text, err := jcs.Marshal(j)
	if err != nil {
		return Key{}, fmt.Errorf("public_key: %w", err)
	}
	return ParseKey(text)
}

// MarshalJSON returns the JWK in canonical form.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.text), nil }

// UnmarshalJSON parses the JWK with ParseKey.
func (k *Key) UnmarshalJSON(text []byte) (err error) {
	*k, err = ParseKey(text)
	return err
}

// Thumbprint returns the thumbprint of the JWK (RFC 7638) with SHA-256, in base64url.
func (k Key) Thumbprint() string {
	sum := sha256.Sum256([]byte(k.text))
	return Bytes(sum[:]).String()
}

// verify checks a signature over a message.
func (k Key) verify(message, signature []byte) error {
	digest := sha256.Sum256(message)
	switch {
	case k.ecdsa != nil && strictDER(signature) && ecdsa.VerifyASN1(k.ecdsa, digest[:], signature):
	case !k.ed25519.IsZero() && k.ed25519.Verify(message, signature):
	case k.rsa != nil && rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, digest[:], signature) == nil:
	default:
		return tlog.ErrSignature
	}
	return nil
}

// strictDER reports whether b is the DER encoding of a SEQUENCE of two positive INTEGERs of at most
// 32 bytes and a leading zero byte. The verification checks that they are below the order of the
// curve.
func strictDER(b []byte) bool {
	if len(b) < 2 || b[0] != 0x30 || int(b[1]) != len(b)-2 || b[1] >= 0x80 {
		return false
	}
	b = b[2:]
	for range 2 {
		if len(b) < 3 || b[0] != 0x02 || b[1] == 0 || b[1] > 33 || len(b) < 2+int(b[1]) {
			return false
		}
		number := b[2 : 2+int(b[1])]
		negative, zero := number[0] >= 0x80, number[0] == 0
		if negative || zero && (len(number) == 1 || number[1] < 0x80) {
			return false
		}
		b = b[2+len(number):]
	}
	return len(b) == 0
}
