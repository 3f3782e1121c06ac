// Package passkeytest is an authenticator in software that also does the browser's part of the work. Tests can change
// each step to show which wrong answers are refused.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Flags of authenticator data (WebAuthn, section 6.1).
const (
	Present        = 0x01
	Verified       = 0x04
	BackupEligible = 0x08
	BackedUp       = 0x10
	attested       = 0x40
)

// Authenticator has one passkey. All fields may be changed between two answers.
type Authenticator struct {
	t testing.TB

	Origin     string // of the page
	RPID       string // "": as the options say
	Type       string // of the client data; "": the right one
	Credential []byte // id of the passkey
	Handle     []byte // of the account, from the options
	Counter    uint32 // of the last answer
	Flags      byte
	Break      func(signature []byte) // called before an assertion is sent

	key *ecdsa.PrivateKey
}

// New returns an authenticator that answers pages of an origin.
func New(t testing.TB, origin string) *Authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authenticator{t: t, Origin: origin, Credential: make([]byte, 16), Flags: Present | Verified, key: key}
	rand.Read(a.Credential)
	return a
}

// options contains the members of both ceremonies' options that an authenticator reads.
type options struct {
	PublicKey struct {
		Challenge string `json:"challenge"`
		RPID      string `json:"rpId"`
		RP        struct {
			ID string `json:"id"`
		} `json:"rp"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	} `json:"publicKey"`
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (a *Authenticator) readOptions(answer []byte) (o options) {
	a.t.Helper()
	if err := json.Unmarshal(answer, &o); err != nil || o.PublicKey.Challenge == "" {
		a.t.Fatalf("not the options of a passkey: %s, %v", answer, err)
	}
	return o
}

func (a *Authenticator) encode(v any) string {
	a.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(b)
}

// clientData returns the browser's text about the page and the challenge.
func (a *Authenticator) clientData(kind, challenge string) []byte {
	if a.Type != "" {
		kind = a.Type
	}
	return []byte(a.encode(map[string]any{
		"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false}))
}

func (a *Authenticator) authenticatorData(rpID string, flags byte) []byte {
	if a.RPID != "" {
		rpID = a.RPID
	}
	hash := sha256.Sum256([]byte(rpID))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), a.Counter)
}

// Create answers the options for a new passkey, in the form of a browser's toJSON.
func (a *Authenticator) Create(answer []byte) string {
	a.t.Helper()
	o := a.readOptions(answer)
	handle, err := base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID)
	if err != nil {
		a.t.Fatal(err)
	}
	a.Handle = handle
	data := append(a.authenticatorData(o.PublicKey.RP.ID, a.Flags|attested), make([]byte, 16)...)
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(a.Credential))), a.Credential...)
	data = append(data, a.publicKey()...)
	return a.encode(map[string]any{
		"id": text(a.Credential), "rawId": text(a.Credential), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON":    text(a.clientData("webauthn.create", o.PublicKey.Challenge)),
			"attestationObject": text(attestation(data)), "transports": []string{"internal"},
		},
	})
}

// publicKey returns the key in COSE form (RFC 9053).
func (a *Authenticator) publicKey() []byte {
	point, err := a.key.PublicKey.Bytes()
	if err != nil {
		a.t.Fatal(err)
	}
	key := []byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 32}
	key = append(key, point[1:33]...)
	return append(append(key, 0x22, 0x58, 32), point[33:]...)
}

// attestation returns the CBOR of an attestation object without an attestation.
func attestation(data []byte) []byte {
	object := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59")
	return append(binary.BigEndian.AppendUint16(object, uint16(len(data))), data...)
}

// Use answers the options of a sign-in and increments the count.
func (a *Authenticator) Use(answer []byte) string {
	a.t.Helper()
	a.Counter++
	o := a.readOptions(answer)
	client := a.clientData("webauthn.get", o.PublicKey.Challenge)
	data := a.authenticatorData(o.PublicKey.RPID, a.Flags)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(data, hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		a.t.Fatal(err)
	}
	if a.Break != nil {
		a.Break(signature)
	}
	return a.encode(map[string]any{
		"id": text(a.Credential), "rawId": text(a.Credential), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON": text(client), "authenticatorData": text(data), "signature": text(signature),
			"userHandle": text(a.Handle),
		},
	})
}

// Assert answers the options of a vote or of a voter key. bucket is the time bucket of the signed text.
func (a *Authenticator) Assert(options any, bucket string) signedvote.Assertion {
	a.t.Helper()
	var answer struct {
		ID       signedvote.Bytes `json:"rawId"`
		Response struct {
			AuthenticatorData signedvote.Bytes `json:"authenticatorData"`
			ClientData        signedvote.Bytes `json:"clientDataJSON"`
			Signature         signedvote.Bytes `json:"signature"`
		} `json:"response"`
	}
	used := a.Use([]byte(a.encode(map[string]any{"publicKey": options})))
	if err := json.Unmarshal([]byte(used), &answer); err != nil {
		a.t.Fatal(err)
	}
	return signedvote.Assertion{AuthenticatorData: answer.Response.AuthenticatorData, ClientDataJSON: answer.Response.ClientData,
		CredentialID: answer.ID, Signature: answer.Response.Signature, Time: bucket}
}

// SignText signs a text of package signedvote; bucket is its time bucket.
func (a *Authenticator) SignText(text []byte, rpID, bucket string) signedvote.Assertion {
	a.t.Helper()
	challenge := signedvote.Challenge(text)
	return a.Assert(map[string]any{"challenge": signedvote.Bytes(challenge[:]), "rpId": rpID}, bucket)
}

// AddTo adds the passkey to an account.
func (a *Authenticator) AddTo(f *factor.Factors, who account.Account) {
	a.t.Helper()
	ceremony, err := f.BeginCreation(a.t.Context(), who)
	if err != nil {
		a.t.Fatal(err)
	}
	credential, err := f.CheckCreation(ceremony.Cookie, "phone", []byte(a.Create([]byte(a.encode(ceremony.Options)))))
	if err == nil {
		_, _, err = f.Add(a.t.Context(), who, credential, account.Visit{})
	}
	if err != nil {
		a.t.Fatal(err)
	}
}
