// Package passkeys holds signed votes against a third-party authenticator and a third-party relying party.
package passkeys

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/verify/signedvote"
)

const (
	logOrigin = id.Origin("log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856")
	page      = "https://log.example"
	party     = "log.example"
	bucket    = "2026-11-18T14:25:00Z"
	at        = id.Instant(1_795_012_021_500) // 2026-11-18T14:27:01.500Z
)

// algorithms are the COSE identifiers.
var algorithms = map[string]int{"ES256": -7, "EdDSA": -8, "RS256": -257}

// start starts the program and returns a function that queries it.
func start(t *testing.T) func(asked any, answer any) {
	t.Helper()
	p := exec.Command("node", "passkeys.mjs")
	input, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); _ = p.Wait() })
	in, out := json.NewEncoder(input), json.NewDecoder(bufio.NewReader(output))
	return func(asked, answer any) {
		t.Helper()
		if err := in.Encode(asked); err != nil {
			t.Fatal(err)
		}
		if err := out.Decode(answer); err != nil {
			t.Fatalf("no answer (run npm ci in interop/passkeys): %v", err)
		}
	}
}

type asked struct {
	Do         string                `json:"do"`
	Origin     string                `json:"origin"`
	RPID       string                `json:"rp_id"`
	Algorithm  int                   `json:"alg,omitempty"`
	Credential *signedvote.Bytes     `json:"credential_id,omitempty"`
	Challenge  signedvote.Bytes      `json:"challenge,omitempty"`
	Key        *signedvote.Key       `json:"key,omitempty"`
	Assertion  *signedvote.Assertion `json:"assertion,omitempty"`
}

func voteText(t *testing.T) []byte {
	t.Helper()
	v := signedvote.Vote{Origin: logOrigin, ApprovalID: "apr_1", ActionDigest: id.Hash{7}, Vote: "approve", Reason: "seen"}
	text, err := v.Text(bucket)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The assertions of the third-party authenticator are valid votes and registrations, and any single change makes them
// invalid.
func TestTheirAuthenticator(t *testing.T) {
	ask := start(t)
	for name, algorithm := range algorithms {
		var made struct {
			Verified   bool             `json:"verified"`
			Credential signedvote.Bytes `json:"credential_id"`
			Key        json.RawMessage  `json:"key"`
		}
		ask(asked{Do: "create", Origin: page, RPID: party, Algorithm: algorithm}, &made)
		key, err := signedvote.ParseKey(made.Key)
		if err != nil || !made.Verified {
			t.Fatalf("%s: %s, %v", name, made.Key, err)
		}
		sign := func(text []byte) signedvote.Assertion {
			challenge := signedvote.Challenge(text)
			var a signedvote.Assertion
			ask(asked{Do: "sign", Origin: page, RPID: party, Credential: &made.Credential, Challenge: challenge[:]}, &a)
			a.Time = bucket
			return a
		}
		c := signedvote.Credential{ID: made.Credential, Key: key, RPID: party, WebOrigin: page}
		text := voteText(t)
		a := sign(text)
		if err := c.Check(text, &a, at); err != nil {
			t.Errorf("%s: %v, flags %x, client data %s", name, err, a.AuthenticatorData[32:], a.ClientDataJSON)
		}
		other := append([]byte{}, text...)
		other[len(other)-2]++
		if err := c.Check(other, &a, at); err == nil {
			t.Errorf("%s: another text is accepted", name)
		}
		registration, err := signedvote.KeyText(logOrigin, "acc_1", made.Credential, key, bucket)
		if err != nil {
			t.Fatal(err)
		}
		r := signedvote.Registration{AccountID: "acc_1", CredentialID: made.Credential, Possession: sign(registration), PublicKey: key,
			RPID: party, Transition: signedvote.Registered, WebOrigin: page}
		if err := r.CheckPossession(logOrigin, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The third-party relying party accepts what this project's authenticator signs, and rejects what this project
// rejects.
func TestTheirRelyingParty(t *testing.T) {
	ask := start(t)
	text := voteText(t)
	challenge := signedvote.Challenge(text)
	for _, algorithm := range passkeytest.Algorithms {
		for name, change := range map[string]func(*passkeytest.Voter){
			"right":                     func(*passkeytest.Voter) {},
			"another page":              func(v *passkeytest.Voter) { v.Origin = "https://evil.example" },
			"another relying party":     func(v *passkeytest.Voter) { v.RPID = "evil.example" },
			"without user verification": func(v *passkeytest.Voter) { v.Flags = 0x01 },
			"without user presence":     func(v *passkeytest.Voter) { v.Flags = 0x04 },
			"a registration":            func(v *passkeytest.Voter) { v.Client = map[string]any{"type": "webauthn.create"} },
			"another challenge":         func(v *passkeytest.Voter) { v.Client = map[string]any{"challenge": "AAAA"} },
			"backed up, not eligible":   func(v *passkeytest.Voter) { v.Flags = 0x15 },
		} {
			v := passkeytest.NewVoter(t, "ann", algorithm)
			registered := v.Credential
			change(v)
			a := v.Sign(text, bucket)
			var said struct {
				Verified bool   `json:"verified"`
				Why      string `json:"why"`
			}
			ask(asked{Do: "verify", Origin: page, RPID: party, Challenge: challenge[:], Key: &registered.Key, Assertion: &a}, &said)
			ours := registered.Check(text, &a, at)
			if said.Verified != (name == "right") || (ours == nil) != said.Verified {
				t.Errorf("%s, %s: theirs %v (%s), ours %v", algorithm, name, said.Verified, said.Why, ours)
			}
		}
	}
}
