package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// TB returns the test that the passkey belongs to.
func (v *Voter) TB() testing.TB { return v.t }

// Algorithms are the algorithms that NewVoter supports.
var Algorithms = []string{"ES256", "EdDSA", "RS256"}

// Voter is a passkey that signs the texts of package signedvote. Its keys and signatures derive from its name, so that
// published vectors stay the same. All fields may be changed between two signatures.
type Voter struct {
	t testing.TB
	signedvote.Credential

	Origin  string // of the page
	RPID    string // of the authenticator data
	Flags   byte
	Counter uint32
	After   []byte // after the 37 bytes of authenticator data
	// Client adds members to the client data or replaces them; a nil value removes a member.
	Client map[string]any

	private crypto.Signer
}

// NewVoter returns the passkey with a name and a key for an algorithm.
func NewVoter(t testing.TB, name, algorithm string) *Voter {
	t.Helper()
	seed := sha256.Sum256([]byte("agentledger voter: " + name))
	v := &Voter{t: t, Origin: "https://log.example", RPID: "log.example", Flags: Present | Verified}
	var err error
	switch algorithm {
	case "ES256":
		v.private, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	case "EdDSA":
		v.private = ed25519.NewKeyFromSeed(seed[:])
	default:
		v.private = rsaKey(t, seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := signedvote.NewKey(v.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	v.Credential = signedvote.Credential{ID: seed[:16], Key: key, RPID: v.RPID, WebOrigin: v.Origin}
	return v
}

// rsaKeys caches keys by seed, because finding primes takes a while.
var rsaKeys sync.Map

// rsaKey derives an RSA key of 2,048 bits from a seed.
func rsaKey(t testing.TB, seed [32]byte) *rsa.PrivateKey {
	t.Helper()
	if k, cached := rsaKeys.Load(seed); cached {
		return k.(*rsa.PrivateKey)
	}
	random := rand.NewChaCha8(seed)
	one, e := big.NewInt(1), big.NewInt(65537)
	prime := func() *big.Int {
		b := make([]byte, 128)
		for {
			random.Read(b)
			b[0], b[127] = b[0]|0xc0, b[127]|1
			p := new(big.Int).SetBytes(b)
			if less := new(big.Int).Sub(p, one); p.ProbablyPrime(0) && new(big.Int).GCD(nil, nil, less, e).Cmp(one) == 0 {
				return p
			}
		}
	}
	p, q := prime(), prime()
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537},
		D: new(big.Int).ModInverse(e, phi), Primes: []*big.Int{p, q}}
	k.Precompute()
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	rsaKeys.Store(seed, k)
	return k
}

// Sign signs a text; bucket is its time bucket.
func (v *Voter) Sign(text []byte, bucket string) signedvote.Assertion {
	challenge := signedvote.Challenge(text)
	client := map[string]any{"type": "webauthn.get", "challenge": signedvote.Bytes(challenge[:]).String(),
		"origin": v.Origin, "crossOrigin": false}
	for name, value := range v.Client {
		if client[name] = value; value == nil {
			delete(client, name)
		}
	}
	encoded, err := jcs.Marshal(client)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.SignClientData(encoded, bucket)
}

// SignClientData signs the given client data.
func (v *Voter) SignClientData(client []byte, bucket string) signedvote.Assertion {
	party := sha256.Sum256([]byte(v.RPID))
	data := append(binary.BigEndian.AppendUint32(append(party[:], v.Flags), v.Counter), v.After...)
	hash := sha256.Sum256(client)
	message := append(data[:len(data):len(data)], hash[:]...)
	signed, options := message, crypto.SignerOpts(crypto.Hash(0))
	if _, isEd25519 := v.private.(ed25519.PrivateKey); !isEd25519 {
		digest := sha256.Sum256(message)
		signed, options = digest[:], crypto.SHA256
	}
	signature, err := v.private.Sign(nil, signed, options)
	if err != nil {
		v.t.Fatal(err)
	}
	return signedvote.Assertion{AuthenticatorData: data, ClientDataJSON: client, CredentialID: v.ID, Signature: signature,
		Time: bucket}
}
