// Package subjecttoken verifies that a JWT of an issuer states for whom an agent acts. It hides the discovery of the issuer, its
// keys and their rotation from callers, who open a token once and compare it with each event.
//
// Invariants:
//
//   - A token proves a member on_behalf_of only if its signature, issuer, audience and times are valid, and if issuer, subject and
//     the whole chain of actors are equal. Only asymmetric algorithms are accepted.
//   - No error contains the token or a claim.
//   - Keys are cached for an hour. A token that names an unknown key, and an issuer that did not answer, cause at most one call a
//     minute for each issuer. Keys remain usable for a day while the issuer does not answer.
//   - A token has at most MaxToken bytes, an issuer at most maxKeys keys, and at most maxTries signatures are checked for a token.
package subjecttoken

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/egress"
)

// MaxToken is the maximum length of a token in bytes.
const MaxToken = 8 << 10

const (
	maxIssuers = 1024
	maxKeys    = 64
	maxTries   = 8    // keys that are tried for a token without kid
	maxModulus = 8192 // bits of an RSA key
	maxNesting = 8    // of act

	keysAge   = time.Hour
	staleAge  = 24 * time.Hour // of keys while the issuer does not answer
	clockSkew = time.Minute
)

// Issuer is whose tokens are accepted, and for which audience.
type Issuer struct {
	URL      string
	Audience string
}

// Getter makes calls to addresses that organizations configure. egress.Client implements it.
type Getter interface {
	Get(ctx context.Context, address string, header http.Header) (egress.Answer, error)
}

// Verifier verifies tokens. Its methods may be called concurrently.
type Verifier struct {
	client Getter
	clock  func() time.Time
	keys   *cache.Loading[string, *keySet]
}

// keySet is the keys of an issuer. It is immutable.
type keySet struct {
	keys   []jose.JSONWebKey
	readAt time.Time
	err    error // of the latest call, if it brought no keys
}

// New returns a verifier. If clock is nil, it is time.Now.
func New(client Getter, clock func() time.Time) *Verifier {
	if clock == nil {
		clock = time.Now
	}
	return &Verifier{client: client, clock: clock, keys: cache.NewLoading(cache.LoadingOptions[string, *keySet]{
		MaxAge: keysAge, Clock: clock, Limit: maxIssuers})}
}

// Open checks a token by the keys that are cached. It never waits: if the keys are not cached, or if the token names an unknown
// one, it returns fault.Unavailable with the code issuer_unreachable, and the keys are read. It returns fault.Invalid with the
// code subject_not_verified for every other token that proves nothing.
func (v *Verifier) Open(of Issuer, token string) (Proof, error) {
	if len(token) > MaxToken {
		return Proof{}, errNotVerified(errors.New("too long"))
	}
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil {
		return Proof{}, errNotVerified(errors.New("not a JWT with an accepted algorithm"))
	}
	if !isKnownType(signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType]) {
		return Proof{}, errNotVerified(errors.New("another type of token"))
	}
	payload, err := v.checkSignature(of.URL, signed)
	if err != nil {
		return Proof{}, err
	}
	c, err := parseClaims(payload, of, v.clock())
	if err != nil {
		return Proof{}, errNotVerified(err)
	}
	return Proof{c}, nil
}

// Proof is a token that was valid when it was opened. It is immutable.
type Proof struct{ claims claims }

// Proves returns fault.Invalid with the code subject_not_verified unless issuer, subject and actors are those of the token.
func (p *Proof) Proves(stated *event.OnBehalfOf) error {
	if err := p.claims.check(stated); err != nil {
		return errNotVerified(err)
	}
	return nil
}

// Wait waits until the keys of an issuer were read within the last minute. It returns fault.Unavailable if they cannot be read.
func (v *Verifier) Wait(ctx context.Context, of Issuer) error {
	_, err := v.findKeys(ctx, of.URL, true)
	return err
}

func errNotVerified(cause error) error {
	return &fault.Error{Kind: fault.Invalid, Code: "subject_not_verified", Message: "The token does not prove on_behalf_of", Err: cause}
}

func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
}

// isKnownType reports whether typ of a token is absent or that of an access token (RFC 9068) or of any JWT.
func isKnownType(typ any) bool {
	text, ok := typ.(string)
	text = strings.TrimPrefix(strings.ToLower(text), "application/")
	return typ == nil || ok && (text == "jwt" || text == "at+jwt" || text == "jose")
}

// checkSignature returns the payload of a token that a key of the issuer signed.
func (v *Verifier) checkSignature(issuer string, signed *jose.JSONWebSignature) ([]byte, error) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var tried *keySet
	for _, again := range []bool{false, true} { // the issuer may have a new key
		set, err := v.findKeys(ended, issuer, again)
		if err != nil {
			return nil, err
		}
		if set == tried {
			break
		}
		tried = set
		if payload, ok := set.verify(signed); ok {
			return payload, nil
		}
	}
	return nil, errNotVerified(errors.New("signature of no key of the issuer"))
}

// verify tries the keys that fit the header.
func (s *keySet) verify(signed *jose.JSONWebSignature) (payload []byte, ok bool) {
	header, tries := signed.Signatures[0].Protected, 0
	for i := range s.keys {
		k := &s.keys[i]
		if header.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm {
			continue
		}
		if tries++; tries > maxTries {
			break
		}
		if payload, err := signed.Verify(k.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// findKeys returns the keys of an issuer. If again is set, they were read within this minute of the clock.
func (v *Verifier) findKeys(ctx context.Context, issuer string, again bool) (*keySet, error) {
	known, _ := v.keys.LastLoaded(issuer)
	version := uint64(0)
	if again || known != nil && known.err != nil {
		version = uint64(v.clock().Unix()) / 60
	}
	set, err := v.keys.GetAt(ctx, issuer, version, func(ctx context.Context) (*keySet, error) {
		return v.readKeys(ctx, issuer, known), nil
	})
	if err != nil && !again && known != nil && len(known.keys) > 0 && v.clock().Sub(known.readAt) < staleAge {
		return known, nil // while they are being read
	}
	if err == nil && len(set.keys) == 0 {
		err = cmp.Or(set.err, errNoKeys)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unavailable, Code: "issuer_unreachable", RetryAfter: time.Second,
			Message: "The keys of the token's issuer are not known", Err: err}
	}
	return set, nil
}

var errNoKeys = errors.New("the issuer has no keys")

// readKeys reads the keys of an issuer. If that fails, it returns the known ones for a day.
func (v *Verifier) readKeys(ctx context.Context, issuer string, known *keySet) *keySet {
	now := v.clock()
	keys, err := v.fetchKeys(ctx, issuer)
	set := &keySet{keys: keys, readAt: now, err: err}
	if err != nil && known != nil && now.Sub(known.readAt) < staleAge {
		set.keys, set.readAt = known.keys, known.readAt
	}
	return set
}

// fetchKeys asks the issuer for its keys (OpenID Connect Discovery, section 4).
func (v *Verifier) fetchKeys(ctx context.Context, issuer string) ([]jose.JSONWebKey, error) {
	var metadata struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := v.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &metadata); err != nil {
		return nil, fmt.Errorf("read metadata of the issuer: %w", err)
	}
	if metadata.Issuer != issuer {
		return nil, errors.New("metadata of another issuer")
	}
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := v.get(ctx, metadata.Keys, &set); err != nil {
		return nil, fmt.Errorf("read keys of the issuer: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, text := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) == nil && isUsable(&k) { // a key of a kind that is not known is no failure (RFC 7517 section 5)
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// isUsable reports whether a key is a public key for signatures.
func isUsable(k *jose.JSONWebKey) bool {
	public, isRSA := k.Key.(*rsa.PublicKey)
	return k.Valid() && k.IsPublic() && slices.Contains([]string{"", "sig", "jwt-svid"}, k.Use) && (!isRSA || public.N.BitLen() <= maxModulus)
}

func (v *Verifier) get(ctx context.Context, address string, into any) error {
	answer, err := v.client.Get(ctx, address, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("status %d", answer.Status)
	}
	if json.Unmarshal(answer.Body, into) != nil {
		return errors.New("not the expected JSON")
	}
	return nil
}
