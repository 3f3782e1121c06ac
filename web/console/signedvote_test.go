package console_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// signer is a member with a passkey.
type signer struct {
	*servicetest.Person
	t   *testing.T
	s   *servicetest.Service
	key *passkeytest.Authenticator
}

// addPasskey adds a passkey to a member's account, which ends its other sessions.
func addPasskey(t *testing.T, s *servicetest.Service, p *servicetest.Person, name string) *signer {
	t.Helper()
	key := passkeytest.New(t, s.URL)
	var begun json.RawMessage
	p.Call(http.MethodPost, "/v1/id/account/passkeys/begin", nil, &begun)
	p.Call(http.MethodPost, "/v1/id/account/passkeys/finish",
		map[string]any{"name": name, "credential": json.RawMessage(key.Create(begun))}, nil)
	return &signer{p, t, s, key}
}

func (g *signer) credential() string { return base64.RawURLEncoding.EncodeToString(g.key.Credential) }

type keyOptions struct {
	Time       string          `json:"time"`
	Possession json.RawMessage `json:"possession"`
	Consent    json.RawMessage `json:"consent"`
}

func (g *signer) keyOptions() (o keyOptions) {
	g.t.Helper()
	g.Call(http.MethodPost, "/v1/console/voter-keys/options", map[string]any{"credential_id": g.credential()}, &o)
	return o
}

func (g *signer) registration(o keyOptions, by *passkeytest.Authenticator) map[string]any {
	g.t.Helper()
	body := map[string]any{"credential_id": g.credential(), "possession": g.key.Assert(o.Possession, o.Time)}
	if by != nil {
		body["consent"] = by.Assert(o.Consent, o.Time)
	}
	return body
}

type voteOptions struct {
	Time      string          `json:"time"`
	Text      string          `json:"text"`
	PublicKey json.RawMessage `json:"public_key"`
}

func ballot(a servicetest.Asked, vote string) map[string]any {
	return map[string]any{"vote": vote, "action_digest": a.ActionDigest, "comment": "in budget"}
}

func (g *signer) voteOptions(a servicetest.Asked, vote string) (o voteOptions) {
	g.t.Helper()
	g.Call(http.MethodPost, "/v1/console/approvals/"+a.ID+"/votes/options", ballot(a, vote), &o)
	return o
}

// signed returns a ballot with its signature.
func (g *signer) signed(a servicetest.Asked, vote string) map[string]any {
	g.t.Helper()
	o := g.voteOptions(a, vote)
	b := ballot(a, vote)
	b["assertion"] = g.key.Assert(o.PublicKey, o.Time)
	return b
}

func (g *signer) send(a servicetest.Asked, body map[string]any) servicetest.Answer {
	g.t.Helper()
	return g.Try(http.MethodPost, "/v1/console/approvals/"+a.ID+"/votes", body)
}

func newSignedWorld(t *testing.T) (*servicetest.Service, *servicetest.Person, *signer) {
	t.Helper()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	eve := s.Red.Join("eve", "approver")
	g := addPasskey(t, s, s.SignIn(eve), "phone")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"signed_votes": "required"}, nil)
	return s, ann, g
}

// A member registers a passkey and signs a vote with it. The evidence pack of the log proves that offline.
func TestSignedVote(t *testing.T) {
	t.Parallel()
	s, ann, g := newSignedWorld(t)
	asked, other := s.Red.Ask(map[string]any{"trace_id": "a"}), s.Red.Ask(map[string]any{"trace_id": "b"})
	g.Try(http.MethodPost, "/v1/console/approvals/"+asked.ID+"/votes/options", ballot(asked, "approve")).
		Want(t, "without a voter key", http.StatusConflict, "no_voter_key")
	g.send(asked, ballot(asked, "approve")).Want(t, "without a signature", http.StatusUnprocessableEntity, "signature_required")
	g.Try(http.MethodPost, "/v1/console/voter-keys", g.registration(g.keyOptions(), nil)).Want(t, "register", http.StatusCreated, `"consent_by":null`)
	o := g.voteOptions(asked, "approve")
	for _, line := range []string{"agentledger/vote/v1\n", asked.ID + "\n", asked.ActionDigest + "\napprove\n"} {
		if !strings.Contains(o.Text, line) {
			t.Errorf("the signed text lacks the line %q: %s", line, o.Text)
		}
	}
	g.send(asked, g.signed(asked, "approve")).Want(t, "signed", http.StatusOK, `"status":"approved"`, `"signature":{"credential_id":"`+g.credential())
	g.send(other, ballot(other, "deny")).Want(t, "a denial needs no signature", http.StatusOK, `"status":"denied"`)
	ann.Get("/v1/console/voter-keys").Want(t, "listed", http.StatusOK, g.credential(), "eve@red.example")
	s.Red.Consume(asked)
	verifyEverywhere(t, ann)

	list := ann.Get("/console/members").Body
	found := regexp.MustCompile(`<a href="(/console/members/mem_[^"]+)" title="[^\n]*\n<span class="quiet small"><bdi>eve@red`).FindStringSubmatch(list)
	if found == nil {
		t.Fatalf("eve is not a member: %s", list)
	}
	ann.Get(found[1]).Want(t, "eve's page", http.StatusOK, "Passkeys that sign votes", "no other passkey", g.credential())
	ann.Post(found[1], "do", "retire-voter", "credential_id", g.credential()).Want(t, "retire", http.StatusSeeOther)
	ann.Get(found[1]).Want(t, "retired", http.StatusOK, "Votes of this member are unverified operator claims.")
}

// verifyEverywhere exports the organization's evidence pack and has each verifier check it, using only the pack and the
// pinned key. Each must report that a passkey signed the vote.
func verifyEverywhere(t *testing.T, owner *servicetest.Person) {
	t.Helper()
	pack := filepath.Join(t.TempDir(), "pack.zip")
	answer := owner.Get("/v1/console/evidence.zip?envelopes=1")
	if err := os.WriteFile(pack, []byte(answer.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	var keys struct {
		Keys []struct {
			VKey string `json:"vkey"`
		} `json:"keys"`
	}
	owner.Call(http.MethodGet, "/v1/public/orgs/red/transparency/keys", nil, &keys)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"aps": {filepath.Join(filepath.Dir(servicetest.Program(t)), "aps"), "verify", pack, "--key", keys.Keys[0].VKey},
		"TypeScript": {"node", "--no-warnings", "--input-type=module", "-e", `
			import { openAsBlob } from "node:fs";
			import { verifyPack } from "` + root + `/clients/typescript/src/verify/pack.js";
			const [, pack, key] = process.argv;
			const { outcome, lines } = await verifyPack(await openAsBlob(pack), { key });
			console.log(lines.join("\n"));
			process.exit(outcome === "proved" ? 0 : 1);`, pack, keys.Keys[0].VKey},
		"Python": {filepath.Join(root, "clients/python/interpreter"), "-B", "-c",
			"import sys; from agentledger import verify; r = verify.pack(sys.argv[1], key=sys.argv[2]); print(r); sys.exit(not r.proved)", pack, keys.Keys[0].VKey},
	} {
		c := exec.CommandContext(t.Context(), command[0], command[1:]...)
		c.Dir = filepath.Join(root, "clients/python")
		c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "clients/python/src"))
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "approve, signed by the passkey") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Each page with votes states whether the approver's passkey signed them, and since when it is registered.
func TestVoteWords(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	eve := s.SignIn(s.Red.Join("eve", "approver")).AddPasskey("phone")
	eve.Register(nil)
	carl := s.SignIn(s.Red.Join("carl", "approver"))
	requireApproval(ann, 2, "")
	asked := s.Red.Ask(nil)
	path := "/console/approvals/" + asked.ID
	eve.Vote(asked, "approve", "in budget")
	carl.Post(path, "do", "approve", "action_digest", asked.ActionDigest).Want(t, "unsigned", http.StatusSeeOther)
	const signed, unsigned = "signed by the approver's passkey, registered on ", "unsigned: an unverified operator claim"
	page := ann.Get(path).Want(t, "approval", http.StatusOK)
	votes := strings.Split(section(page.Body, "standing", "ul"), "<li>")
	if len(votes) != 3 || !strings.Contains(html.UnescapeString(votes[1]), signed+"<time datetime=") || !strings.Contains(votes[1], "eve@red.example") ||
		!strings.Contains(votes[2], unsigned) || !strings.Contains(votes[2], "carl@red.example") {
		t.Errorf("approval: got %q", votes)
	}
	var list struct {
		Events []struct {
			ID string `json:"event_id"`
		} `json:"events"`
	}
	for end := time.Now().Add(time.Minute); len(list.Events) < 3 && time.Now().Before(end); { // the index lags behind the log
		ann.Call(http.MethodGet, "/v1/console/events?action_kind=ledger_approval", nil, &list)
	}
	seen := map[string]int{}
	for _, e := range list.Events {
		text := html.UnescapeString(ann.Get("/console/events/" + e.ID).Body)
		for _, words := range []string{"yes by <bdi>eve@red.example</bdi>, " + signed + "<time datetime=", "yes, " + unsigned} {
			if strings.Contains(text, words) {
				seen[words]++
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("events: got %v", seen)
	}
}

// The signing button never casts an unsigned vote, even without a script.
func TestSignedVoteWithoutSignature(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	eve := s.SignIn(s.Red.Join("eve", "approver")).AddPasskey("phone")
	asked := s.Red.Ask(nil)
	path := "/console/approvals/" + asked.ID
	eve.Get(path).Want(t, "without a voter key", http.StatusOK, "Your vote will be an unverified operator claim", `value="approve"`).
		WantNone(t, "without a voter key", "data-sign")
	eve.Register(nil)
	eve.Get(path).Want(t, "with a voter key", http.StatusOK, `value="sign" data-sign`, "Approve without a signature")
	eve.Post(path, "do", "sign", "action_digest", asked.ActionDigest).
		Want(t, "no signature", http.StatusUnprocessableEntity, "Your vote was not sent, because no passkey signed it:")
	eve.Post(path, "do", "sign", "action_digest", asked.ActionDigest, "assertion", "{").
		Want(t, "a broken signature", http.StatusUnprocessableEntity, "The signature can't be read")
	eve.Get(path).Want(t, "after that", http.StatusOK, "waiting for votes", "0 of 1 approvals")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"signed_votes": "required"}, nil)
	other := "/console/approvals/" + s.Red.Ask(map[string]any{"trace_id": "signed"}).ID
	eve.Get(other).Want(t, "required", http.StatusOK, `value="sign" data-sign`, "Signing needs JavaScript", "each signed by the approver's passkey").
		WantNone(t, "required", `value="approve"`)
	ann.Get(other).Want(t, "required, without a key", http.StatusOK, "no passkey of yours signs votes here yet", "/account/factors?return=", `value="deny"`).
		WantNone(t, "required, without a key", `value="approve"`, "data-sign")
	back := `<a href="` + other + `">Back to the approval</a>`
	ann.Get("/account/factors?return="+other).Want(t, "the way back", http.StatusOK, back)
	for _, elsewhere := range []string{"https://evil.example/console/approvals/x", "//evil.example", "/console/settings"} {
		ann.Get("/account/factors?return="+elsewhere).Want(t, elsewhere, http.StatusOK).WantNone(t, elsewhere, "Back to the approval")
	}
}

// Any mismatch invalidates a signature.
func TestSignedVoteAttacks(t *testing.T) {
	t.Parallel()
	s, ann, g := newSignedWorld(t)
	g.Try(http.MethodPost, "/v1/console/voter-keys", g.registration(g.keyOptions(), nil)).Want(t, "register", http.StatusCreated)
	one, two := s.Red.Ask(map[string]any{"trace_id": "a", "payload": map[string]any{"n": 1}}), s.Red.Ask(map[string]any{"trace_id": "b", "payload": map[string]any{"n": 2}})
	const refused = "signature_refused"
	good := g.signed(one, "approve")
	g.send(two, good).Want(t, "another approval and action", http.StatusUnprocessableEntity, refused)
	changed := g.signed(one, "approve")
	changed["vote"] = "deny"
	g.send(one, changed).Want(t, "another vote", http.StatusUnprocessableEntity, refused)
	changed = g.signed(one, "approve")
	changed["comment"] = "words of somebody else"
	g.send(one, changed).Want(t, "another remark", http.StatusUnprocessableEntity, refused)
	changed = g.signed(one, "approve")
	changed["action_digest"] = two.ActionDigest
	g.send(one, changed).Want(t, "another action", http.StatusUnprocessableEntity, refused)
	changed = g.signed(one, "approve")
	old := changed["assertion"].(signedvote.Assertion)
	old.Time = "2026-01-01T00:00:00Z"
	changed["assertion"] = old
	g.send(one, changed).Want(t, "another time", http.StatusUnprocessableEntity, refused)

	keep := *g.key
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"another origin":          func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example" },
		"another rpId":            func(a *passkeytest.Authenticator) { a.RPID = "evil.example" },
		"a creation":              func(a *passkeytest.Authenticator) { a.Type = "webauthn.create" },
		"no user verification":    func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
		"nobody there":            func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Verified },
		"backed up, not eligible": func(a *passkeytest.Authenticator) { a.Flags |= passkeytest.BackedUp },
		"attested data":           func(a *passkeytest.Authenticator) { a.Flags |= 0x40 },
		"a broken signature":      func(a *passkeytest.Authenticator) { a.Break = func(b []byte) { b[len(b)-1] ^= 1 } },
		"an unknown credential":   func(a *passkeytest.Authenticator) { a.Credential = []byte("a credential of nobody") },
	} {
		change(g.key)
		body := g.signed(one, "approve")
		*g.key = keep
		keep.Counter += 10
		g.key.Counter = keep.Counter
		g.send(one, body).Want(t, name, http.StatusUnprocessableEntity, refused)
	}
	g.key.Counter = 0
	g.send(one, g.signed(one, "approve")).Want(t, "a counter that does not rise", http.StatusUnauthorized, "passkey_refused")
	g.key.Counter = keep.Counter + 10

	// Of another account: ann has no voter key, and eve's belongs to eve.
	body := g.signed(one, "approve")
	(&signer{ann, t, s, g.key}).send(one, body).Want(t, "the credential of another account", http.StatusUnprocessableEntity, refused)
	bob := s.SignIn(s.Blue.Owner)
	(&signer{bob, t, s, g.key}).send(one, body).Want(t, "another organization", http.StatusUnprocessableEntity, refused)
	g.send(one, body).Want(t, "the right one", http.StatusOK, `"status":"approved"`)
	g.send(one, body).Want(t, "replayed", http.StatusUnauthorized, "passkey_refused")

	// A second key needs the consent of the first.
	second := addPasskey(t, s, g.Person, "laptop")
	second.Try(http.MethodPost, "/v1/console/voter-keys", second.registration(second.keyOptions(), nil)).
		Want(t, "no consent", http.StatusUnprocessableEntity, "consent_required")
	second.Try(http.MethodPost, "/v1/console/voter-keys", second.registration(second.keyOptions(), second.key)).
		Want(t, "consent by itself", http.StatusUnprocessableEntity, refused)
	second.Try(http.MethodPost, "/v1/console/voter-keys", second.registration(second.keyOptions(), g.key)).
		Want(t, "consent", http.StatusCreated, `"consent_by":"`)
	g.Try(http.MethodDelete, "/v1/console/voter-keys/"+g.credential(), nil).Want(t, "retire", http.StatusNoContent)
	body = ballot(two, "approve")
	o := second.voteOptions(two, "approve")
	body["assertion"] = g.key.Assert(o.PublicKey, o.Time)
	g.send(two, body).Want(t, "a retired key", http.StatusUnprocessableEntity, refused)

	// The operator removes the factors and signs in as eve: no key remains, and the log has the retirements.
	body = second.signed(two, "approve")
	s.RemoveFactors("eve@red.example")
	eve := s.SignIn("eve@red.example")
	(&signer{eve, t, s, second.key}).send(two, body).Want(t, "after the operator's removal", http.StatusUnprocessableEntity, refused)
	(&signer{eve, t, s, second.key}).send(two, ballot(two, "approve")).Want(t, "unsigned", http.StatusUnprocessableEntity, "signature_required")
	if events := ann.Get("/v1/console/events?action_kind=ledger_voter_key").Body; strings.Count(events, `"ledger_voter_key"`) != 4 {
		t.Errorf("the log lacks the two registrations or the two retirements: %s", events)
	}
}
