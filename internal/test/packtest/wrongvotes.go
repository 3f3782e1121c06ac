package packtest

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/verify/pack"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// WrongVotes returns invalid packs with signed votes: first from logs in which a dishonest service states a vote that
// the approver did not cast, then packs changed after the service issued them.
func WrongVotes(t testing.TB) (all []Wrong) {
	t.Helper()
	for _, c := range append(voteAttacks(t), keyAttacks(t)...) {
		l := newVoteLog(t, c.change)
		l.askForVote()
		all = append(all, Wrong{Name: "signed votes: " + c.name, Bytes: l.Pack(l.selection).Bytes(t)})
	}
	for _, c := range voterFileChanges(t) {
		l := newVoteLog(t, c.change)
		p := l.Pack(l.selection)
		l.bend(p)
		all = append(all, Wrong{Name: "signed votes: " + c.name, Bytes: p.Bytes(t)})
	}
	return all
}

// askForVote returns a description of the small pack that has only the vote of acc_1.
func (l *voteLog) askForVote() {
	at := id.Index(slices.IndexFunc(l.Events, func(e Logged) bool {
		return strings.HasPrefix(e.Envelope.ActorPrincipal, l.account+"/") &&
			e.Envelope.ActionKind == "ledger_approval"
	}))
	from, to := strconv.Itoa(int(at)), strconv.Itoa(int(at)+1)
	l.selection.Begin, l.selection.End, l.selection.Request = at, at+1, pack.Request{From: &from, To: &to}
}

type voteAttack struct {
	name   string
	change func(*voteLog)
}

// voteAttacks change the vote of acc_1.
func voteAttacks(t testing.TB) []voteAttack {
	sign := func(change func(*signedvote.Vote)) func(*voteLog) { return func(l *voteLog) { l.sign = change } }
	stored := func(change func(map[string]any)) func(*voteLog) { return func(l *voteLog) { l.stored = change } }
	signed := func(member string, change func(text string) any) func(*voteLog) {
		return stored(func(p map[string]any) {
			s := p["signed"].(map[string]any)
			s[member] = change(s[member].(string))
		})
	}
	decoded := func(change func([]byte) []byte) func(string) any {
		return func(text string) any {
			b, err := base64.RawURLEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return base64.RawURLEncoding.EncodeToString(change(b))
		}
	}
	key := func(change func(*passkeytest.Voter)) func(*voteLog) {
		return func(l *voteLog) {
			// The key registers correctly, but signs the vote in another way.
			v := *l.Key
			change(&v)
			l.signer = &v
		}
	}
	flags := func(f byte) func(*voteLog) { return key(func(v *passkeytest.Voter) { v.Flags = f }) }
	client := func(name string, value any) func(*voteLog) {
		return key(func(v *passkeytest.Voter) { v.Client = map[string]any{name: value} })
	}
	by := func(algorithm string, change func([]byte) []byte) func(*voteLog) {
		return func(l *voteLog) {
			l.Key = passkeytest.NewVoter(t, "key "+algorithm, algorithm)
			l.signer = l.Key
			signed("signature", decoded(change))(l)
		}
	}
	return []voteAttack{
		{"another action", sign(func(v *signedvote.Vote) { v.ActionDigest[0]++ })},
		{"another approval", sign(func(v *signedvote.Vote) { v.ApprovalID = "apr_2" })},
		{"another log", sign(func(v *signedvote.Vote) { v.Origin += "/2" })},
		{"a denial as an approval", sign(func(v *signedvote.Vote) { v.Vote = "deny" })},
		{"another reason", sign(func(v *signedvote.Vote) { v.Reason = "" })},
		{"a reason that was added", stored(func(p map[string]any) { p["reason_code"] = "urgent" })},
		{"a reason that was removed", stored(func(p map[string]any) { delete(p, "reason") })},
		{"a reason that is no text", stored(func(p map[string]any) { p["reason"] = 1 })},
		{"a reason_code that is no text", stored(func(p map[string]any) { p["reason_code"] = []any{} })},
		{"a reason as its code", stored(func(p map[string]any) { p["reason_code"] = p["reason"]; delete(p, "reason") })},
		{"another time bucket", signed("time", func(string) any { return "2026-11-18T11:10:00Z" })},
		{"a time that is no bucket", signed("time", func(string) any { return "2026-11-18T11:06:00Z" })},
		{"a time with milliseconds", signed("time", func(string) any { return "2026-11-18T11:05:00.000Z" })},
		{"an old time bucket", func(l *voteLog) {
			l.stored = func(p map[string]any) {
				digest, err := id.ParseHash(l.action)
				if err != nil {
					t.Fatal(err)
				}
				const old = "2026-11-18T10:50:00Z"
				v := signedvote.Vote{Origin: origin, ApprovalID: Approval, ActionDigest: digest, Vote: "approve",
					Reason: p["reason"].(string)}
				text, err := v.Text(old)
				if err != nil {
					t.Fatal(err)
				}
				p["signed"] = l.object(l.Key.Sign(text, old))
			}
		}},
		{"no time", stored(func(p map[string]any) { delete(p["signed"].(map[string]any), "time") })},
		{"a member more", stored(func(p map[string]any) { p["signed"].(map[string]any)["user_handle"] = "AQ" })},
		{"null", stored(func(p map[string]any) { p["signed"] = nil })},
		{"true", stored(func(p map[string]any) { p["signed"] = true })},
		{"signed without a vote", stored(func(p map[string]any) { delete(p, "vote") })},
		{"signed abstention", stored(func(p map[string]any) { p["vote"] = "abstain" })},
		{"a page of another origin", key(func(v *passkeytest.Voter) { v.Origin = "https://log.example.evil.example" })},
		{"a page of another port", key(func(v *passkeytest.Voter) { v.Origin = "https://log.example:8443" })},
		{"another relying party", key(func(v *passkeytest.Voter) { v.RPID = "example" })},
		{"the registration of a passkey", client("type", "webauthn.create")},
		{"a frame of another site", client("crossOrigin", true)},
		{"crossOrigin null", key(func(v *passkeytest.Voter) { v.Client = map[string]any{"crossOrigin": []any{}} })},
		{"a top origin", client("topOrigin", "https://log.example")},
		{"no challenge", client("challenge", nil)},
		{"without user presence", flags(0x04)},
		{"without user verification", flags(0x01)},
		{"backed up, but not eligible", flags(0x15)},
		{"a reserved flag", flags(0x07)},
		{"the other reserved flag", flags(0x25)},
		{"the flag of attested data", flags(0x45)},
		{"the flag of extensions", flags(0x85)},
		{"attested data", key(func(v *passkeytest.Voter) { v.Flags, v.After = 0x45, make([]byte, 18) })},
		{"a long counter", key(func(v *passkeytest.Voter) { v.After = []byte{0} })},
		{"a changed counter", signed("authenticator_data", decoded(func(b []byte) []byte { b[36]++; return b }))},
		{"client data with a name twice", stored(func(p map[string]any) {
			s := p["signed"].(map[string]any)
			b, err := base64.RawURLEncoding.DecodeString(s["client_data_json"].(string))
			if err != nil {
				t.Fatal(err)
			}
			b = bytes.Replace(b, []byte("{"), []byte(`{"origin":"https://evil.example",`), 1)
			s["client_data_json"] = base64.RawURLEncoding.EncodeToString(b)
		})},
		{"long client data", client("more", strings.Repeat("x", 2048))},
		{"padded base64url", signed("signature", func(s string) any { return s + "==" })},
		{"base64url with a line end", signed("signature", func(s string) any { return s + "\n" })},
		{"another passkey's signature", func(l *voteLog) {
			v := *l.Phone
			v.ID = l.Key.ID
			l.signer = &v
		}},
		{"another account's passkey", func(l *voteLog) { l.signer = l.Laptop }},
		{"another account", func(l *voteLog) { l.account = "acc_2" }},
		{"a passkey that was never registered", func(l *voteLog) { l.signer = passkeytest.NewVoter(t, "other", "ES256") }},
		{"a retired passkey", func(l *voteLog) { l.before = func() { l.Retire("acc_1", l.Key) } }},
		{"an EdDSA signature with a byte more", by("EdDSA", func(b []byte) []byte { return append(b, 0) })},
		{"an EdDSA signature with a large S", by("EdDSA", func(b []byte) []byte { b[63] |= 0xe0; return b })},
		{"an ES256 signature with a byte more", by("ES256", func(b []byte) []byte { return append(b, 0) })},
		{"an ES256 signature with a long length", by("ES256", func(b []byte) []byte { return append([]byte{0x30, 0x81}, b[1:]...) })},
		{"an ES256 signature with a zero in front", by("ES256", func(b []byte) []byte {
			b[1], b[3] = b[1]+1, b[3]+1
			return append(b[:4:4], append([]byte{0}, b[4:]...)...)
		})},
		{"an ES256 signature without DER", by("ES256", func(b []byte) []byte { return bytes.Repeat([]byte{7}, 64) })},
		{"an RS256 signature cut", by("RS256", func(b []byte) []byte { return b[:255] })},
		{"an RS256 signature with a zero in front", by("RS256", func(b []byte) []byte { return append([]byte{0}, b...) })},
		{"an RS256 signature changed", by("RS256", func(b []byte) []byte { b[128]++; return b })},
	}
}

// keyAttacks change the registration of the security key.
func keyAttacks(t testing.TB) []voteAttack {
	register := func(change func(l *voteLog, r *signedvote.Registration)) func(*voteLog) {
		return func(l *voteLog) { l.register = func(r *signedvote.Registration) { change(l, r) } }
	}
	raw := func(old, text string) func(*voteLog) {
		return func(l *voteLog) {
			l.before = func() {
				// The second to last event is the registration of the security key. It is logged again with a change.
				e := l.Events[2].Envelope
				payload := strings.Replace(string(e.Payload), old, text, 1)
				if payload == string(e.Payload) {
					t.Fatalf("no %s in %s", old, e.Payload)
				}
				var object map[string]any
				l.read([]byte(payload), &object)
				l.Append(EventSpec{Kind: signedvote.KeyKind, Payload: object})
			}
		}
	}
	jwk := func(key string) func(*voteLog) {
		return func(l *voteLog) {
			text, err := l.Key.Credential.Key.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			raw(string(text), key)(l)
		}
	}
	b64 := base64.RawURLEncoding.EncodeToString
	weak := bytes.Repeat([]byte{0xa5}, 128)
	return []voteAttack{
		{"a key of another registration", register(func(l *voteLog, r *signedvote.Registration) { r.PublicKey = l.Laptop.Credential.Key })},
		{"the possession of another passkey", register(func(l *voteLog, r *signedvote.Registration) {
			r.Possession = *r.Consent
			r.Possession.CredentialID = r.CredentialID
		})},
		{"the possession of another account", register(func(l *voteLog, r *signedvote.Registration) {
			text, err := signedvote.KeyText(origin, "acc_2", l.Key.ID, l.Key.Credential.Key, Bucket)
			if err != nil {
				t.Fatal(err)
			}
			r.Possession = l.Key.Sign(text, Bucket)
		})},
		{"the consent of a passkey that was never registered", register(func(l *voteLog, r *signedvote.Registration) {
			text, err := signedvote.KeyText(origin, "acc_1", l.Key.ID, l.Key.Credential.Key, Bucket)
			if err != nil {
				t.Fatal(err)
			}
			consent := passkeytest.NewVoter(t, "other", "ES256").Sign(text, Bucket)
			r.Consent = &consent
		})},
		{"a forged consent", register(func(l *voteLog, r *signedvote.Registration) {
			consent := r.Possession
			consent.CredentialID = l.Phone.ID
			r.Consent = &consent
		})},
		{"consent by itself", register(func(l *voteLog, r *signedvote.Registration) {
			consent := r.Possession
			r.Consent = &consent
		})},
		{"consent to another passkey", register(func(l *voteLog, r *signedvote.Registration) {
			text, err := signedvote.KeyText(origin, "acc_1", l.Laptop.ID, l.Laptop.Credential.Key, Bucket)
			if err != nil {
				t.Fatal(err)
			}
			consent := l.Phone.Sign(text, Bucket)
			r.Consent = &consent
		})},
		{"the consent of a retired passkey", func(l *voteLog) {
			l.before = func() { l.Retire("acc_1", l.Phone); l.Register("acc_1", l.Key, l.Phone, nil) }
		}},
		{"the consent of a passkey that is registered later", func(l *voteLog) {
			late := passkeytest.NewVoter(t, "late", "ES256")
			l.before = func() { l.Register("acc_1", l.Key, late, nil); l.Register("acc_1", late, nil, nil) }
		}},
		{"the consent of another account's passkey", func(l *voteLog) {
			l.before = func() { l.Register("acc_1", l.Key, l.Laptop, nil) }
		}},
		{"another page in the registration", register(func(_ *voteLog, r *signedvote.Registration) { r.WebOrigin = "https://evil.log.example" })},
		{"a page without TLS", raw(`https://log.example`, `http://log.example`)},
		{"a page of another site than rp_id", raw(`"rp_id":"log.example"`, `"rp_id":"evil.example"`)},
		{"another transition", raw(`"transition":"registered"`, `"transition":"replaced"`)},
		{"a registration with a member more", raw(`"rp_id"`, `"aaguid":"","rp_id"`)},
		{"a registration without consent", raw(`"consent":`, `"agreed":`)},
		{"an Ed25519 key of small order", jwk(`{"crv":"Ed25519","kty":"OKP","x":"` + b64(append([]byte{1}, make([]byte, 31)...)) + `"}`)},
		{"an RSA key of 1,024 bits", jwk(`{"e":"AQAB","kty":"RSA","n":"` + b64(weak) + `"}`)},
		{"an RSA key with the exponent 3", jwk(`{"e":"Aw","kty":"RSA","n":"` + b64(append(weak, weak...)) + `"}`)},
		{"a point off the curve", jwk(`{"crv":"P-256","kty":"EC","x":"` + b64(make([]byte, 32)) + `","y":"` + b64(make([]byte, 32)) + `"}`)},
		{"a key with an alg", jwk(`{"alg":"EdDSA","crv":"Ed25519","kty":"OKP","x":"` + b64(append([]byte{1}, make([]byte, 31)...)) + `"}`)},
	}
}

// voterFileChanges change voters.ndjson of a valid log.
func voterFileChanges(t testing.TB) []voteAttack {
	bend := func(change func(l *voteLog, p *Parts)) func(*voteLog) {
		return func(l *voteLog) { l.bend = func(p *Parts) { change(l, p) } }
	}
	lines := func(edit func(l *voteLog, lines []string) []string) func(*voteLog) {
		return bend(func(l *voteLog, p *Parts) {
			editLines(pack.FileVoters, func(before []string) []string { return edit(l, before) })(p)
		})
	}
	plain := func(edit func([]string) []string) func(*voteLog) {
		return lines(func(_ *voteLog, l []string) []string { return edit(l) })
	}
	more := func(l *voteLog, at id.Index) string { return strings.TrimSuffix(l.proven(at, l.selection.Size), "\n") }
	retired := func(change func(l *voteLog, p *Parts)) func(*voteLog) {
		return func(l *voteLog) {
			// The passkey is retired before the vote, but the pack does not contain that event.
			l.before = func() { l.Retire("acc_1", l.Key) }
			l.bend = func(p *Parts) {
				editLines(pack.FileVoters, func(lines []string) []string { return append(lines[:3:3], lines[4:]...) })(p)
				change(l, p)
			}
		}
	}
	return []voteAttack{
		{"without voters.ndjson", bend(func(_ *voteLog, p *Parts) { p.remove(pack.FileVoters); p.Manifest.Counts.VoterKeys = 0 })},
		{"an empty voters.ndjson", plain(func([]string) []string { return nil })},
		{"without the registration that consented", plain(removed(0))},
		{"without the registration", plain(removed(1))},
		{"without the other voter's registration", plain(removed(2))},
		{"registrations in another order", plain(swapped(0))},
		{"a registration twice", plain(doubled(0))},
		{"a registration that no vote needs", func(l *voteLog) {
			l.before = func() { l.Register("acc_4", l.Phone, nil, nil) }
			lines(func(l *voteLog, all []string) []string {
				return append(append(all[:3:3], more(l, 4)), all[3:]...)
			})(l)
		}},
		{"a retirement that no vote needs", func(l *voteLog) {
			l.before = func() { l.Retire("acc_4", l.Phone) }
			lines(func(l *voteLog, all []string) []string {
				return append(append(all[:3:3], more(l, 4)), all[3:]...)
			})(l)
		}},
		{"a retirement of the complete range left out", plain(removed(3))},
		{"a retirement before the vote left out", retired(func(*voteLog, *Parts) {})},
		{"a second registration left out", func(l *voteLog) {
			l.before = func() { l.Register("acc_1", l.Key, nil, nil) }
			plain(removed(3))(l)
		}},
		{"an event of another kind", lines(func(l *voteLog, all []string) []string { return append([]string{more(l, 0)}, all...) })},
		{"a statement of another kind", lines(func(l *voteLog, all []string) []string {
			return append(all, more(l, id.Index(len(l.Events)-1)))
		})},
		{"another proof", plain(func(l []string) []string {
			at := strings.Index(l[0], `"proof":["`) + len(`"proof":["`)
			flip(&l[0], at)
			return l
		})},
		{"another entry", plain(func(l []string) []string {
			l[0] = strings.Replace(l[0], `\"seq\":2`, `\"seq\":3`, 1)
			return l
		})},
		{"a line with white space", plain(func(l []string) []string { l[0] = strings.Replace(l[0], `,"proof"`, `, "proof"`, 1); return l })},
		{"a line with a member more", plain(func(l []string) []string { l[0] = strings.Replace(l[0], `,"record"`, `,"q":1,"record"`, 1); return l })},
		{"an empty line", plain(func(l []string) []string { return append(l, "") })},
		{"another count of voter keys", bend(func(_ *voteLog, p *Parts) { p.Manifest.Counts.VoterKeys++ })},
		{"no count of voter keys", bend(func(_ *voteLog, p *Parts) { p.Manifest.Counts.VoterKeys = 0 })},
		{"a count of 0 voter keys", func(l *voteLog) {
			l.unsigned = true
			l.bend = func(p *Parts) {
				p.addDigests()
				text, err := p.Manifest.Text()
				if err != nil {
					t.Fatal(err)
				}
				at := strings.Index(string(text), `,"edge":`) // after counts
				p.Text = string(text[:at-1]) + `,"voter_keys":0` + string(text[at-1:])
			}
		}},
		{"voters.ndjson without a signed vote", func(l *voteLog) {
			l.unsigned = true
			l.bend = func(p *Parts) {
				p.Manifest.Counts.VoterKeys = 1
				at := len(p.Files) - 1
				p.Files = slices.Insert(p.Files, at, File{pack.FileVoters, l.proven(1, l.selection.Size)})
			}
		}},
		{"an empty voters.ndjson without a signed vote", func(l *voteLog) {
			l.unsigned = true
			l.bend = func(p *Parts) { p.Files = slices.Insert(p.Files, len(p.Files)-1, File{pack.FileVoters, ""}) }
		}},
	}
}
