package pack

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Vote is a vote on an approval, as an event of the range states it.
type Vote struct {
	ApprovalID string    `json:"approval_id"`
	AccountID  string    `json:"account_id"`
	Vote       string    `json:"vote"`                // approve or deny
	DeputyFor  string    `json:"deputy_for,omitzero"` // the account in whose place the account voted, according to the operator; "" if none
	Signed     *VoterKey `json:"signed"`              // if nil, only the operator claims that the account cast the vote
}

// VoterKey is the passkey that signed a vote, as stated by the event that registered it.
type VoterKey struct {
	Thumbprint   string     `json:"thumbprint"`
	RegisteredAt id.Instant `json:"registered_at"`
	LogIndex     id.Index   `json:"log_index"`
	Consent      *VoterKey  `json:"consent"` // the passkey that consented to the registration; nil if none did
}

// String returns the line of a report. The verifiers in other languages use the same words.
func (v *Vote) String() string {
	words := fmt.Sprintf("vote of %s on %s: %s, ", v.AccountID, v.ApprovalID, v.Vote)
	if v.DeputyFor != "" {
		words += fmt.Sprintf("in place of %s, ", v.DeputyFor)
	}
	if v.Signed == nil {
		return words + "unsigned: an unverified operator claim"
	}
	words += "signed by the passkey " + v.Signed.String()
	if v.Signed.Consent == nil {
		return words + " without the consent of another passkey: whose passkey it is, is an unverified operator claim"
	}
	return words + ", with the consent of the passkey " + v.Signed.Consent.String()
}

// String returns the thumbprint and when the key was registered.
func (k *VoterKey) String() string {
	return fmt.Sprintf("%s, registered %s (entry %d)", k.Thumbprint, k.RegisteredAt, k.LogIndex)
}

// VoteLines returns the printed lines about votes, which are the same in every verifier.
func (r *Report) VoteLines() (lines []string) {
	for i := range r.Votes {
		lines = append(lines, r.Votes[i].String())
	}
	if more := r.VotesSigned + r.VotesUnsigned - uint64(len(r.Votes)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more votes; of all votes, %d are signed and %d are not", more, r.VotesSigned,
			r.VotesUnsigned))
	}
	return lines
}

// voterEvent is a line of voters.ndjson with checked signatures.
type voterEvent struct {
	at        id.Index
	of        id.Hash                // voterName of account and credential
	key       *signedvote.Credential // if nil, the event retires the key
	statement VoterKey
	consent   id.Hash // voterName of the key that consented, or zero
}

// voter is the history of one credential of one account.
type voter struct {
	events    []*voterEvent // ascending
	usedUntil id.Index      // the last vote or consent by it, or 0: its registration comes before any use
	// The sequence number of the first registration in envelopes.ndjson that has no line, or 0.
	unlisted uint64
}

// voterName returns a name of bounded size. Account IDs contain no line end.
func voterName(account, credential string) id.Hash {
	return sha256.Sum256([]byte(account + "\n" + credential))
}

// readVoters checks the events about voter keys.
func (c *checker) readVoters() error {
	c.voters = make(map[id.Hash]*voter)
	if c.files.byName[FileVoters] == nil {
		return nil
	}
	for line, err := range c.files.lines(FileVoters) {
		if err != nil {
			return err
		}
		if c.found.VoterKeys++; c.found.VoterKeys > MaxVoterKeys {
			return fmt.Errorf("too many: %w", verify.ErrMalformed)
		}
		e, err := c.checkVoterEvent(line)
		if n := len(c.voterEvents); err == nil && n > 0 && e.at <= c.voterEvents[n-1].at {
			err = fmt.Errorf("order: %w", verify.ErrMismatch)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.found.VoterKeys, err)
		}
		v := c.voters[e.of]
		if v == nil {
			v = &voter{}
			c.voters[e.of] = v
		}
		v.events = append(v.events, e)
		c.voterEvents = append(c.voterEvents, e)
	}
	if c.found.VoterKeys == 0 {
		return fmt.Errorf("no line: %w", verify.ErrMismatch)
	}
	return nil
}

// checkVoterEvent checks one line. The preceding lines are already checked.
func (c *checker) checkVoterEvent(line []byte) (*voterEvent, error) {
	d, at, err := c.checkProven(line, signedvote.KeyKind)
	if err != nil {
		return nil, err
	}
	registered, retired, err := signedvote.ParseKeyEvent(d.Envelope.Payload)
	if err != nil {
		return nil, err
	}
	if retired != nil {
		return &voterEvent{at: at, of: voterName(retired.AccountID, retired.CredentialID.String())}, nil
	}
	received := d.Record.ReceivedAt
	if err := registered.CheckPossession(c.manifest.Origin, received); err != nil {
		return nil, err
	}
	e := &voterEvent{at: at, of: voterName(registered.AccountID, registered.CredentialID.String()), key: registered.Credential(),
		statement: VoterKey{Thumbprint: registered.PublicKey.Thumbprint(), RegisteredAt: received, LogIndex: at}}
	if registered.Consent == nil {
		return e, nil
	}
	e.consent = voterName(registered.AccountID, registered.Consent.CredentialID.String())
	by, err := c.registered(e.consent, at)
	if err != nil {
		return nil, fmt.Errorf("consent: %w", err)
	}
	if err := registered.CheckConsent(c.manifest.Origin, by.key, received); err != nil {
		return nil, err
	}
	consent := by.statement
	consent.Consent = nil
	e.statement.Consent = &consent
	return e, nil
}

// registered returns the registration that is in force before an index.
func (c *checker) registered(name id.Hash, before id.Index) (*voterEvent, error) {
	v := c.voters[name]
	if v == nil {
		return nil, fmt.Errorf("no registration of the voter key: %w", verify.ErrMismatch)
	}
	i, _ := v.find(before)
	switch {
	case i == 0:
		return nil, fmt.Errorf("no registration of the voter key: %w", verify.ErrMismatch)
	case v.events[i-1].key == nil:
		return nil, fmt.Errorf("voter key was retired: %w", verify.ErrMismatch)
	}
	return v.events[i-1], nil
}

// find returns the position of the first event at or after an index, and whether it is at the
// index.
func (v *voter) find(at id.Index) (int, bool) {
	return slices.BinarySearchFunc(v.events, at, func(e *voterEvent, at id.Index) int { return cmp.Compare(e.at, at) })
}

// checkListed records a shown event about a voter key of voters.ndjson that has no line there.
func (c *checker) checkListed(e *event.Envelope, at id.Index) error {
	if e.ActionKind != signedvote.KeyKind || len(c.voters) == 0 {
		return nil
	}
	var payload struct {
		Transition jsontext.Value `json:"transition"`
		Account    jsontext.Value `json:"account_id"`
		Credential jsontext.Value `json:"credential_id"`
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return fmt.Errorf("payload: %w: %w", verify.ErrMalformed, err)
	}
	var texts [3]string
	for i, value := range []jsontext.Value{payload.Transition, payload.Account, payload.Credential} {
		if value.Kind() != '"' {
			return nil
		}
		if err := json.Unmarshal(value, &texts[i]); err != nil {
			return fmt.Errorf("payload: %w: %w", verify.ErrMalformed, err)
		}
	}
	v := c.voters[voterName(texts[1], texts[2])]
	if v == nil {
		return nil
	}
	if _, listed := v.find(at); listed {
		return nil
	}
	switch {
	case texts[0] == signedvote.Retired:
		return fmt.Errorf("a retirement that is not in %s: %w", FileVoters, verify.ErrMismatch)
	case texts[0] == signedvote.Registered && v.unlisted == 0:
		v.unlisted = at.Sequence()
	}
	return nil
}

// approvalPayload is the part of an event about an approval that is checked.
type approvalPayload struct {
	ApprovalID   string         `json:"approval_id"`
	ActionDigest jsontext.Value `json:"action_digest"`
	Vote         jsontext.Value `json:"vote"`
	Reason       jsontext.Value `json:"reason"`
	ReasonCode   jsontext.Value `json:"reason_code"`
	Signed       jsontext.Value `json:"signed"`
	DeputyFor    jsontext.Value `json:"deputy_for"`
}

// checkVote checks the vote, if any, in an event about an approval. action is the action_digest of
// the event.
func (c *checker) checkVote(d *verify.Documents, p *approvalPayload, action id.Hash) error {
	account, _, _ := strings.Cut(d.Envelope.ActorPrincipal, "/")
	v := Vote{ApprovalID: p.ApprovalID, AccountID: account, Vote: strings.Trim(string(p.Vote), `"`)}
	isVote := (v.Vote == "approve" || v.Vote == "deny") && event.ValidEvent(v.ApprovalID) && event.ValidEvent(account)
	if text, is := jcs.AppendDecoded(nil, p.DeputyFor); is && event.ValidEvent(string(text)) {
		v.DeputyFor = string(text)
	}
	switch {
	case p.Signed == nil && !isVote:
		return nil
	case p.Signed == nil:
		c.report.VotesUnsigned++
	case !isVote || action == id.Hash{}:
		return fmt.Errorf("signed, but not a vote on an action: %w", verify.ErrMalformed)
	default:
		key, err := c.checkSigned(d, &v, p, action)
		if err != nil {
			return fmt.Errorf("signed: %w", err)
		}
		used := c.voters[key.of]
		used.usedUntil = max(used.usedUntil, id.Index(d.Record.SequenceNum-1))
		c.report.VotesSigned++
		v.Signed = &key.statement
	}
	if len(c.report.Votes) < MaxVotes {
		c.report.Votes = append(c.report.Votes, v)
	}
	return nil
}

// checkSigned checks the assertion of a vote, and returns the registration of its key.
func (c *checker) checkSigned(d *verify.Documents, v *Vote, p *approvalPayload, action id.Hash) (*voterEvent, error) {
	signed := signedvote.Vote{Origin: c.manifest.Origin, ApprovalID: v.ApprovalID, ActionDigest: action, Vote: v.Vote}
	for _, m := range []struct {
		name  string
		value jsontext.Value
		to    *string
	}{{"reason", p.Reason, &signed.Reason}, {"reason_code", p.ReasonCode, &signed.ReasonCode}} {
		if m.value == nil || m.value.Kind() == 'n' {
			continue
		}
		if err := json.Unmarshal(m.value, m.to); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, verify.ErrMalformed)
		}
	}
	a, err := signedvote.ParseAssertion(p.Signed)
	if err != nil {
		return nil, err
	}
	text, err := signed.Text(a.Time)
	if err != nil {
		return nil, err
	}
	key, err := c.registered(voterName(v.AccountID, a.CredentialID.String()), id.Index(d.Record.SequenceNum-1))
	if err != nil {
		return nil, err
	}
	return key, key.key.Check(text, &a, d.Record.ReceivedAt)
}

// checkVotersUsed checks that each line of voters.ndjson is needed: by a later vote or consent, or,
// for a retirement, by any vote. It also checks that no needed shown event is missing.
func (c *checker) checkVotersUsed() error {
	for _, e := range slices.Backward(c.voterEvents) {
		if e.key == nil {
			continue
		}
		if c.voters[e.of].usedUntil <= e.at {
			return fmt.Errorf("a voter key that no vote needs: %w", verify.ErrMismatch)
		}
		if by := c.voters[e.consent]; by != nil {
			by.usedUntil = max(by.usedUntil, e.at)
		}
	}
	for _, e := range c.voterEvents {
		if c.voters[e.of].usedUntil == 0 {
			return fmt.Errorf("a retirement that no vote needs: %w", verify.ErrMismatch)
		}
	}
	for _, v := range c.voters {
		if v.unlisted > 0 && id.Index(v.unlisted-1) < v.usedUntil {
			return fmt.Errorf("a registration that is not in the file: %w", verify.ErrMismatch)
		}
	}
	return nil
}
