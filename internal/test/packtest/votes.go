package packtest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Bucket is the time bucket of all signatures in a log of votes.
const Bucket = "2026-11-18T11:05:00Z"

// voteLog is a log with signed votes: acc_1 has a phone, which consented to a security key, and acc_2 has a laptop.
type voteLog struct {
	*Log
	Phone, Key, Laptop *passkeytest.Voter
	action             string // digest
	selection          Selection

	// Changes to the vote of acc_1, which the security key signs. Each may be nil.
	before   func()                         // before the approval is requested
	register func(*signedvote.Registration) // of the security key
	sign     func(*signedvote.Vote)         // that is signed
	stored   func(map[string]any)           // payload of the event
	signer   *passkeytest.Voter
	account  string
	unsigned bool // no vote is signed
	bend     func(*Parts)
}

// Register logs a registration. Another passkey consents to it, unless that is nil.
func (l *voteLog) Register(account string, v, by *passkeytest.Voter, change func(*signedvote.Registration)) {
	l.t.Helper()
	text, err := signedvote.KeyText(origin, account, v.ID, v.Credential.Key, Bucket)
	if err != nil {
		l.t.Fatal(err)
	}
	r := &signedvote.Registration{AccountID: account, CredentialID: v.ID, Possession: v.Sign(text, Bucket),
		PublicKey: v.Credential.Key, RPID: v.Credential.RPID, Transition: signedvote.Registered, WebOrigin: v.WebOrigin}
	if by != nil {
		consent := by.Sign(text, Bucket)
		r.Consent = &consent
	}
	if change != nil {
		change(r)
	}
	l.state(account+"/session", r)
}

// Retire logs that a passkey is no longer a voter key.
func (l *voteLog) Retire(account string, v *passkeytest.Voter) {
	l.t.Helper()
	l.state("operator", signedvote.Retirement{AccountID: account, CredentialID: v.ID, Transition: signedvote.Retired})
}

func (l *voteLog) state(principal string, v any) {
	l.t.Helper()
	l.Append(EventSpec{Kind: signedvote.KeyKind, Principal: principal, Payload: l.object(v)})
}

// Vote logs a vote signed by a passkey. signed changes what the passkey signs, stored the payload of the event.
func (l *voteLog) Vote(account string, v *passkeytest.Voter, payload map[string]any, signed func(*signedvote.Vote),
	stored func(map[string]any)) {
	l.t.Helper()
	payload["approval_id"], payload["action_digest"] = Approval, l.action
	if v != nil && !l.unsigned {
		digest, err := id.ParseHash(l.action)
		if err != nil {
			l.t.Fatal(err)
		}
		vote := signedvote.Vote{Origin: origin, ApprovalID: Approval, ActionDigest: digest, Vote: payload["vote"].(string)}
		vote.Reason, _ = payload["reason"].(string)
		vote.ReasonCode, _ = payload["reason_code"].(string)
		if signed != nil {
			signed(&vote)
		}
		text, err := vote.Text(Bucket)
		if err != nil {
			l.t.Fatal(err)
		}
		payload["signed"] = l.object(v.Sign(text, Bucket))
	}
	if stored != nil {
		stored(payload)
	}
	l.Append(EventSpec{Kind: "ledger_approval", Principal: account + "/session", Payload: payload})
}

// newVoteLog logs at least 11 events. change sets the changes to the vote.
func newVoteLog(t testing.TB, change func(*voteLog)) *voteLog {
	t.Helper()
	l := &voteLog{Log: NewLog(t), account: "acc_1", Phone: passkeytest.NewVoter(t, "phone", "ES256"),
		Key: passkeytest.NewVoter(t, "key", "EdDSA"), Laptop: passkeytest.NewVoter(t, "laptop", "RS256")}
	l.Phone.Flags |= passkeytest.BackupEligible | passkeytest.BackedUp
	l.Key.Counter = 41
	l.signer = l.Key
	organizationID, err := id.ParseOrganization(organization)
	if err != nil {
		t.Fatal(err)
	}
	action, err := grant.NewAction(organizationID, "agt_1", "acme.payments.refund", []byte(`{"amount_usd":20000}`))
	if err != nil {
		t.Fatal(err)
	}
	l.action = action.Digest().String()
	change(l)

	l.Append(EventSpec{Tool: "acme.payments.refund", Judged: true})
	l.Register("acc_1", l.Phone, nil, nil)
	l.Register("acc_1", l.Key, l.Phone, l.register)
	l.Register("acc_2", l.Laptop, nil, nil)
	if l.before != nil {
		l.before()
	}
	l.Append(EventSpec{Kind: "ledger_approval", Principal: "ik_1", Payload: map[string]any{
		"approval_id": Approval, "transition": "requested", "step": 1, "action_digest": l.action}})
	l.Vote(l.account, l.signer, map[string]any{"transition": "voted", "step": 2, "vote": "approve",
		"reason": "seen the \u00e9 \"invoice\""}, l.sign, l.stored)
	l.Vote("acc_3", nil, map[string]any{"transition": "voted", "step": 3, "vote": "approve", "deputy_for": "acc_5"}, nil, nil)
	l.Vote("acc_2", l.Laptop, map[string]any{"transition": "approved", "step": 4, "vote": "approve", "reason_code": "checked",
		"deputy_for": "no account"}, nil, nil)
	l.Retire("acc_1", l.Key)
	l.Append(EventSpec{Tool: "acme.payments.refund", Judged: true, Approval: Approval})
	l.Append(EventSpec{Kind: "ledger_evidence_exported", Payload: map[string]any{"manifest_sha256": l.action}})
	l.approval = map[string]any{"action_digest": l.action, "agent_id": "agt_1", "tool_name": "acme.payments.refund",
		"payload": string(action.Payload), "people": []any{map[string]any{"account_id": l.account, "email": "ann@example.com"}}}
	size := id.Index(len(l.Events))
	l.selection = Selection{Size: size, End: size, Request: pack.Request{Envelopes: true}}
	return l
}

// VotePack returns a valid pack with signed votes.
func VotePack(t testing.TB) *Parts {
	t.Helper()
	l := newVoteLog(t, func(*voteLog) {})
	return l.Pack(l.selection)
}

// VotersPack returns a pack whose voters.ndjson has n lines, at least 4. It is otherwise valid: most lines are
// retirements of one passkey after its vote.
func VotersPack(t testing.TB, lines int) *Parts {
	t.Helper()
	l := newVoteLog(t, func(*voteLog) {})
	for range lines - 4 {
		l.Retire("acc_1", l.Key)
	}
	a, to := l.selection, strconv.Itoa(int(l.selection.End))
	a.Size, a.Request.To = id.Index(len(l.Events)), &to
	return l.Pack(a)
}

// BentVotePack returns a pack with one signed vote from a service that changed the payload of the vote, or else of its
// passkey's registration. bend returns the changed payload.
func BentVotePack(t testing.TB, vote bool, bend func(payload []byte) []byte) *Parts {
	t.Helper()
	l := newVoteLog(t, func(l *voteLog) {
		bent := func(payload []byte) (object map[string]any) {
			after, _, err := jcs.ParseObject(nil, bend(payload), jcs.MaxDepth-1)
			if err != nil {
				after = payload
			}
			l.read(after, &object)
			return object
		}
		if vote {
			l.stored = func(p map[string]any) {
				changed := bent([]byte(l.text(p)))
				clear(p)
				maps.Copy(p, changed)
			}
			return
		}
		l.before = func() { l.Append(EventSpec{Kind: signedvote.KeyKind, Payload: bent(l.Events[2].Envelope.Payload)}) }
	})
	l.askForVote()
	return l.Pack(l.selection)
}

// voterName identifies a credential of an account.
type voterName struct{ account, credential string }

// keyEvent decodes an event about a voter key.
func (l *Log) keyEvent(i id.Index) (name voterName, consent string, retired, is bool) {
	e := l.Events[i].Envelope
	if e.ActionKind != signedvote.KeyKind {
		return name, "", false, false
	}
	var p map[string]any // of a service that may be dishonest, so of any types
	l.read(e.Payload, &p)
	text := func(object any, name string) string {
		members, _ := object.(map[string]any)
		value, _ := members[name].(string)
		return value
	}
	return voterName{text(p, "account_id"), text(p, "credential_id")}, text(p["consent"], "credential_id"),
		text(p, "transition") == signedvote.Retired, true
}

// VoterEvents returns the indices of the events about voter keys that the signed votes in a range need.
func (l *Log) VoterEvents(a Selection) (needed []id.Index) {
	used := map[voterName]id.Index{}
	for i := a.Begin; i < a.End; i++ {
		e := l.Events[i].Envelope
		var p struct {
			Signed any `json:"signed"`
		}
		if e.ActionKind != "ledger_approval" {
			continue
		}
		l.read(e.Payload, &p)
		if signed, is := p.Signed.(map[string]any); is {
			account, _, _ := strings.Cut(e.ActorPrincipal, "/")
			credential, _ := signed["credential_id"].(string)
			used[voterName{account, credential}] = i
		}
	}
	for i := a.Size; i > 0; i-- {
		name, consent, retired, is := l.keyEvent(i - 1)
		if until, isUsed := used[name]; !is || retired || !isUsed || until <= i-1 {
			continue
		}
		if needed = append(needed, i-1); consent != "" {
			by := voterName{name.account, consent}
			used[by] = max(used[by], i-1)
		}
	}
	for i := range a.Size {
		if name, _, retired, _ := l.keyEvent(i); retired && used[name] > 0 {
			needed = append(needed, i)
		}
	}
	slices.Sort(needed)
	return needed
}

// voters returns a line for each event about a voter key that is needed.
func (l *Log) voters(a Selection, counts *pack.Counts) string {
	l.t.Helper()
	var lines strings.Builder
	for _, at := range l.VoterEvents(a) {
		counts.VoterKeys++
		lines.WriteString(l.proven(at, a.Size))
	}
	return lines.String()
}

// proven returns a line with an event and its proof.
func (l *Log) proven(at, size id.Index) string {
	l.t.Helper()
	if l.tiles == nil || id.Index(len(l.tiles[0])) != size {
		l.tiles = newTiles(l.leaves(size))
	}
	proof, err := tlog.Inclusion(context.Background(), l.tiles, at, size)
	if err != nil {
		l.t.Fatal(err)
	}
	e := &l.Events[at]
	return l.text(pack.Erasure{Entry: string(e.Entry.Text()), Envelope: string(e.Envelope.Canonical), Proof: proof,
		Record: e.Text}) + "\n"
}

// VoteSamples returns valid packs with signed votes.
func VoteSamples(t testing.TB) (all []Sample) {
	t.Helper()
	add := func(name string, change, ask func(*voteLog)) {
		l := newVoteLog(t, change)
		if ask != nil {
			ask(l)
		}
		shown, a := uint64(0), l.selection
		for i := a.Begin; i < a.End; i++ {
			if e := l.Events[i].Envelope; a.Request.Matches(e.AgentID, e.TraceID, e.Tool) {
				shown++
			}
		}
		all = append(all, Sample{name, l.Pack(a), a.Begin, a.End, shown, uint64(a.End-a.Begin) - shown, 0})
	}
	text := func(s string) *string { return &s }
	agent := id.Agent("agt_1")
	same := func(*voteLog) {}
	add("signed votes", same, nil)
	add("signed votes without envelopes", same, func(l *voteLog) { l.selection.Request.Envelopes = false })
	add("signed votes of a range after the registrations", same, func(l *voteLog) {
		a := &l.selection
		a.Begin, a.End, a.Request.From, a.Request.To = 4, 8, text("4"), text("8")
	})
	add("signed votes among the events of an agent", same, func(l *voteLog) { l.selection.Request.AgentID = &agent })
	add("one signed vote", same, (*voteLog).askForVote)
	add("a signed vote by a passkey that was retired and registered again", func(l *voteLog) {
		l.before = func() { l.Retire("acc_1", l.Key); l.Register("acc_1", l.Key, l.Phone, nil) }
	}, nil)
	add("a signed vote by a passkey that was registered twice", func(l *voteLog) {
		l.before = func() { l.Register("acc_1", l.Key, nil, nil) }
	}, nil)
	add("a signed vote after the key that consented was retired", func(l *voteLog) {
		l.before = func() { l.Retire("acc_1", l.Phone) }
	}, nil)
	add("a signed vote, with events about other keys", func(l *voteLog) {
		l.before = func() {
			other := passkeytest.NewVoter(t, "other", "ES256")
			l.Register("acc_1", other, l.Key, nil)
			l.Register("acc_4", l.Laptop, nil, nil)
			l.Retire("acc_4", l.Laptop)
			l.Retire("acc_1", other)
		}
	}, nil)
	add("a signed denial", func(l *voteLog) {
		l.sign = func(v *signedvote.Vote) { v.Vote = "deny" }
		l.stored = func(p map[string]any) { p["vote"] = "deny" }
	}, nil)
	add("a signed vote with an empty reason", func(l *voteLog) {
		l.sign = func(v *signedvote.Vote) { v.Reason = "" }
		l.stored = func(p map[string]any) { p["reason"], p["reason_code"] = "", nil }
	}, nil)
	add("a signed vote with the client data of another browser", func(l *voteLog) {
		l.Key.Client = map[string]any{"crossOrigin": nil, "other_keys_can_be_added_here": "true", "x": []any{1.5, nil}}
	}, nil)
	return all
}
