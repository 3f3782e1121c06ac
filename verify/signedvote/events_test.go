package signedvote_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// register returns the registration of a voter's passkey, with the consent of by unless it is nil.
func register(t testing.TB, v, by *passkeytest.Voter) *signedvote.Registration {
	t.Helper()
	signed, err := signedvote.KeyText(origin, "acc_1", v.ID, v.Key, bucket)
	if err != nil {
		t.Fatal(err)
	}
	r := &signedvote.Registration{AccountID: "acc_1", CredentialID: v.ID, Possession: v.Sign(signed, bucket), PublicKey: v.Key,
		RPID: v.Credential.RPID, Transition: signedvote.Registered, WebOrigin: v.WebOrigin}
	if by != nil {
		other := "2026-11-18T14:20:00Z"
		if signed, err = signedvote.KeyText(origin, "acc_1", v.ID, v.Key, other); err != nil {
			t.Fatal(err)
		}
		consent := by.Sign(signed, other)
		r.Consent = &consent
	}
	return r
}

func payload(t testing.TB, v any) string {
	t.Helper()
	b, err := jcs.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRegistration(t *testing.T) {
	for _, algorithm := range passkeytest.Algorithms {
		first, second := passkeytest.NewVoter(t, "phone", "ES256"), passkeytest.NewVoter(t, "key", algorithm)
		for _, by := range []*passkeytest.Voter{nil, first} {
			text := payload(t, register(t, second, by))
			r, retired, err := signedvote.ParseKeyEvent([]byte(text))
			if err != nil || retired != nil {
				t.Fatal(err)
			}
			if err := r.CheckPossession(origin, at); err != nil {
				t.Error(err)
			}
			if err := r.CheckConsent(origin, &first.Credential, at); (err == nil) != (by != nil) {
				t.Error("consent:", err)
			}
			if payload(t, r) != text {
				t.Error("round trip:", payload(t, r))
			}
		}
	}
	text := payload(t, signedvote.Retirement{AccountID: "acc_1", CredentialID: []byte{1}, Transition: signedvote.Retired})
	if r, retired, err := signedvote.ParseKeyEvent([]byte(text)); err != nil || r != nil || retired.AccountID != "acc_1" {
		t.Error(retired, err)
	}
}

func TestRegistrationAttacks(t *testing.T) {
	phone, key := passkeytest.NewVoter(t, "phone", "ES256"), passkeytest.NewVoter(t, "key", "EdDSA")
	stranger := passkeytest.NewVoter(t, "stranger", "ES256")
	for name, c := range map[string]struct {
		change              func(*signedvote.Registration)
		possession, consent error
	}{
		"another account": {func(r *signedvote.Registration) { r.AccountID = "acc_2" }, verify.ErrMismatch, verify.ErrMismatch},
		"another key":     {func(r *signedvote.Registration) { r.PublicKey = stranger.Key }, verify.ErrMismatch, verify.ErrMismatch},
		"the possession of another passkey": {func(r *signedvote.Registration) {
			r.Possession = register(t, stranger, nil).Possession
		}, verify.ErrMismatch, nil},
		"the consent of another passkey": {func(r *signedvote.Registration) {
			r.Consent = register(t, key, stranger).Consent
		}, nil, verify.ErrMismatch},
		"a forged consent": {func(r *signedvote.Registration) {
			forged := register(t, key, stranger).Consent
			forged.CredentialID = phone.ID
			r.Consent = forged
		}, nil, tlog.ErrSignature},
		"the consent to another passkey": {func(r *signedvote.Registration) {
			r.Consent = register(t, stranger, phone).Consent
		}, nil, verify.ErrMismatch},
	} {
		r := register(t, key, phone)
		c.change(r)
		if err := r.CheckPossession(origin, at); !errors.Is(err, c.possession) {
			t.Errorf("%s: possession: %v", name, err)
		}
		if err := r.CheckConsent(origin, &phone.Credential, at); !errors.Is(err, c.consent) {
			t.Errorf("%s: consent: %v", name, err)
		}
	}
	r := register(t, key, phone)
	if r.CheckPossession(origin+"/2", at) == nil || r.CheckConsent(origin+"/2", &phone.Credential, at) == nil {
		t.Error("a registration is accepted in another log")
	}
	if r.CheckPossession(origin, at+900_000) == nil || r.CheckConsent(origin, &phone.Credential, at+900_000) == nil {
		t.Error("a registration is accepted after its time")
	}
}

func TestParseKeyEventRejects(t *testing.T) {
	phone, key := passkeytest.NewVoter(t, "phone", "ES256"), passkeytest.NewVoter(t, "key", "EdDSA")
	good := payload(t, register(t, key, phone))
	gone := `{"account_id":"acc_1","credential_id":"AQ","transition":"retired"}`
	for name, c := range map[string]struct{ text, old, new string }{
		"no transition":                {good, `,"transition":"registered"`, ``},
		"another transition":           {good, `"transition":"registered"`, `"transition":"replaced"`},
		"a retirement with a key":      {good, `"transition":"registered"`, `"transition":"retired"`},
		"without consent":              {good, `"consent":{`, `"agreed":{`},
		"another member":               {good, `"rp_id"`, `"note":1,"rp_id"`},
		"not canonical":                {good, `,"rp_id"`, `, "rp_id"`},
		"no account":                   {good, `"account_id":"acc_1"`, `"account_id":""`},
		"an account of two lines":      {good, `"account_id":"acc_1"`, `"account_id":"acc_1\n"`},
		"no rp_id":                     {good, `"rp_id":"log.example"`, `"rp_id":""`},
		"rp_id of another site":        {good, `"rp_id":"log.example"`, `"rp_id":"og.example"`},
		"rp_id below the page":         {good, `"rp_id":"log.example"`, `"rp_id":"a.log.example"`},
		"a page without TLS":           {good, `https://log.example`, `http://log.example`},
		"a page with a path":           {good, `https://log.example`, `https://log.example/`},
		"a page with a user":           {good, `https://log.example`, `https://x@log.example`},
		"a page in capitals":           {good, `https://log.example`, `https://Log.example`},
		"a page with port 0":           {good, `https://log.example`, `https://log.example:0`},
		"an app":                       {good, `https://log.example`, `android:apk-key-hash:x`},
		"padded":                       {good, `"credential_id":"`, `"credential_id":"=`},
		"a retirement of nothing":      {gone, `"AQ"`, `""`},
		"a retirement of nobody":       {gone, `acc_1`, ``},
		"a retirement with more":       {gone, `,"tr`, `,"reason":"x","tr`},
		"a retirement, trailing bits":  {gone, `"AQ"`, `"AR"`},
		"consent by the same passkey":  {good, register(t, key, phone).Consent.CredentialID.String(), key.ID.String()},
		"a possession without a time":  {good, `"time":"` + bucket + `"`, `"time":""`},
		"a possession of another time": {good, bucket, "2026-11-18T14:26:00Z"},
	} {
		text := strings.Replace(c.text, c.old, c.new, 1)
		if text == c.text {
			t.Fatalf("%s changes nothing", name)
		}
		if r, gone, err := signedvote.ParseKeyEvent([]byte(text)); !errors.Is(err, verify.ErrMalformed) || r != nil || gone != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := signedvote.Retirement{AccountID: "acc_1", CredentialID: make([]byte, signedvote.MaxCredential+1), Transition: signedvote.Retired}
	if _, _, err := signedvote.ParseKeyEvent([]byte(payload(t, long))); !errors.Is(err, verify.ErrMalformed) {
		t.Error("a long credential:", err)
	}
	for _, page := range []string{"http://localhost", "http://localhost:8080", "https://approve.log.example:8443"} {
		text := strings.Replace(good, "https://log.example", page, 1)
		if strings.HasPrefix(page, "http:") {
			text = strings.Replace(text, `"rp_id":"log.example"`, `"rp_id":"localhost"`, 1)
		}
		if _, _, err := signedvote.ParseKeyEvent([]byte(text)); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}

// No input makes the package panic, what it accepts has one spelling, and no change of an assertion is accepted.
func FuzzAssertion(f *testing.F) {
	v := map[string]*passkeytest.Voter{}
	signed := text(f, vote(), bucket)
	for _, algorithm := range passkeytest.Algorithms {
		v[algorithm] = passkeytest.NewVoter(f, "ann", algorithm)
		f.Add(payload(f, v[algorithm].Sign(signed, bucket)), algorithm)
		f.Add(payload(f, register(f, v[algorithm], passkeytest.NewVoter(f, "phone", "ES256"))), algorithm)
		f.Add(payload(f, v[algorithm].Key), algorithm)
	}
	f.Fuzz(func(t *testing.T, text, algorithm string) {
		if k, err := signedvote.ParseKey([]byte(text)); err == nil && payload(t, k) != text {
			t.Errorf("key %s has another spelling", text)
		}
		if r, gone, err := signedvote.ParseKeyEvent([]byte(text)); err == nil {
			if r != nil && payload(t, r) != text || gone != nil && payload(t, gone) != text {
				t.Errorf("event %s has another spelling", text)
			}
			if r != nil {
				r.CheckPossession(origin, at)
				r.CheckConsent(origin, r.Credential(), at)
			}
		}
		a, err := signedvote.ParseAssertion([]byte(text))
		if err != nil {
			return
		}
		if payload(t, a) != text {
			t.Errorf("assertion %s has another spelling", text)
		}
		by, known := v[algorithm]
		if !known || by.Check(signed, &a, at) != nil {
			return
		}
		good := by.Sign(signed, bucket)
		if string(good.ClientDataJSON) != string(a.ClientDataJSON) || string(good.AuthenticatorData) != string(a.AuthenticatorData) {
			t.Errorf("an assertion that %s did not sign: %s", algorithm, text)
		}
	})
}
