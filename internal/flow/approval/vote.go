package approval

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// The votes.
const (
	Approve = "approve"
	Deny    = "deny"
)

// ViaSlack marks a vote by a button of a message in Slack.
const ViaSlack = "slack"

// maxComment bounds the length of a comment in code points.
const maxComment = 1024

// checkRemark checks a remark. member is the name of the member with its comment.
func checkRemark(member string, r Remark) error {
	if !textcheck.Within(r.Comment, 0, maxComment) {
		return fault.New(fault.Invalid, member+" must have at most 1024 characters")
	}
	if r.Code != "" && !event.ValidKind(r.Code) {
		return fault.New(fault.Invalid, "reason_code must match [a-z][a-z0-9_]{0,63}")
	}
	return nil
}

// Ballot is one user's vote on one approval.
type Ballot struct {
	Account account.ID
	Email   string
	Vote    string // Approve or Deny
	Remark  Remark
	Action  id.Hash
	Via     string // ViaSlack, or "" for a vote on the service's own pages and interface

	Assertion *signedvote.Assertion // nil for a vote without a signature
	Visit     account.Visit         // of the signature
}

// SignedVote returns what the voter signs, except the origin of the log.
func (b *Ballot) SignedVote(name ID) signedvote.Vote {
	return signedvote.Vote{ApprovalID: string(name), ActionDigest: b.Action, Vote: b.Vote, Reason: b.Remark.Comment,
		ReasonCode: b.Remark.Code}
}

// CheckBallot returns fault.Invalid for a malformed ballot.
func CheckBallot(b *Ballot) error {
	if b.Vote != Approve && b.Vote != Deny {
		return fault.New(fault.Invalid, "vote must be approve or deny")
	}
	return checkRemark("comment", b.Remark)
}

// MayVote reports whether a role may vote.
func MayVote(r account.Role) bool { return r.May(account.Vote) }

// Vote counts a ballot. One denial is final. The approval is approved when as many users as its quorum have agreed who
// may vote at that time.
//
// It returns fault.Invalid for a malformed ballot; fault.Forbidden if the user may not vote on this approval;
// fault.Conflict if it is not pending, if its action is another one, or for a second vote.
func (a *Approvals) Vote(ctx context.Context, t id.Tenant, name ID, b Ballot) (Approval, error) {
	if err := CheckBallot(&b); err != nil {
		return Approval{}, err
	}
	if err := a.stateSignIns(ctx, t, b.Account); err != nil {
		return Approval{}, fmt.Errorf("vote: %w", err)
	}
	if b.Assertion != nil {
		if a.voters == nil {
			return Approval{}, fault.New(fault.Invalid, "Signed votes are not available here")
		}
		if err := a.voters.CheckVote(ctx, t, b.Account, b.SignedVote(name), b.Assertion, b.Visit); err != nil {
			return Approval{}, fmt.Errorf("vote: %w", err)
		}
	}
	var after Approval
	var represents account.ID // as the check of the right found it
	may := func(ctx context.Context, s *log.State, r *record) (err error) {
		represents, err = a.checkMayVote(ctx, s, r, b.Account)
		return err
	}
	err := a.changeApproval(ctx, t, string(b.Account), name, may,
		func(ctx context.Context, s *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			if status != Pending {
				return refusal{errConflict("The approval is " + string(status))}
			}
			if r.Value.ActionDigest != b.Action {
				return refusal{errConflict("action_digest does not match the approval")}
			}
			if before := r.Value.toApproval(name, status); before.voteOf(b.Account) != "" {
				return refusal{errConflict("You have already voted on this")}
			}
			if r.Value.Signed && b.Vote == Approve && b.Assertion == nil {
				return refusal{&fault.Error{Kind: fault.Invalid, Code: "signature_required",
					Message: "Sign the vote with your passkey: approving this requires a signed vote"}}
			}
			if err := a.castVote(ctx, s, c, name, r, b, represents); err != nil {
				return err
			}
			after = r.Value.toApproval(name, r.Value.Status)
			return nil
		})
	if err != nil {
		return Approval{}, fmt.Errorf("vote: %w", err)
	}
	return after, nil
}

// stateSignIns states the changes of how a voter and the represented member sign in that are not yet in the log.
func (a *Approvals) stateSignIns(ctx context.Context, t id.Tenant, voter account.ID) error {
	if a.signIns == nil {
		return nil
	}
	represented, err := a.findRepresented(ctx, t)
	if err == nil {
		err = a.signIns.StateSignIn(ctx, t, voter)
	}
	if person := represented[voter]; err == nil && person != "" {
		err = a.signIns.StateSignIn(ctx, t, person)
	}
	return err
}

// checkMayVote checks the voter's current rights, not the ones at the time of the sign-in. It returns the member in
// whose place the voter votes, or "".
func (a *Approvals) checkMayVote(ctx context.Context, s *log.State, r *record, who account.ID) (represents account.ID, err error) {
	e, err := a.newElectorate(ctx, s)
	if err != nil {
		return "", err
	}
	v, err := e.newVoter(ctx, who)
	if err != nil {
		return "", err
	}
	if !v.may {
		return "", fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if v.held != 0 {
		return "", errHeld(&v.people[0], v.held)
	}
	asked := r.toApproval("", r.Status)
	asker, err := v.makers.findAskers(ctx, s, &asked)
	if err != nil {
		return "", err
	}
	if asker(&v.people[0]) {
		return "", fault.New(fault.Forbidden, "You cannot decide on your own request")
	}
	if v.asked(asker) {
		return "", fault.New(fault.Forbidden, "You cannot decide on a request of the member whose deputy you are")
	}
	if asked.Status == Pending {
		if shared, err := v.sharesVote(ctx, &asked, asker); err != nil {
			return "", err
		} else if shared {
			return "", &fault.Error{Kind: fault.Forbidden, Code: string(ObstacleDeputy),
				Message: "A member and the deputy have one vote together, and it was given"}
		}
	}
	for _, given := range r.Votes {
		others, err := a.findPeople(ctx, given.Account, given.DeputyFor)
		if err != nil {
			return "", err
		}
		for _, p := range v.people {
			if slices.ContainsFunc(others, func(o person) bool { return p.SharesAddress(o.Account) }) {
				return "", &fault.Error{Kind: fault.Forbidden, Code: "address_unproved",
					Message: "Another account with your e-mail address has voted, and one of the two addresses is not proved"}
			}
		}
	}
	return v.represents, nil
}

// CheckHold returns fault.Forbidden with code sign_in_changed if the organization rejects the votes of a user after a
// change of how the user signs in.
func (a *Approvals) CheckHold(ctx context.Context, t id.Tenant, who account.ID) error {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	voter, err := a.findPerson(ctx, who)
	if err != nil {
		return err
	}
	return a.checkHold(ctx, s, &voter)
}

func (a *Approvals) checkHold(ctx context.Context, s *log.State, p *person) error {
	settings, err := a.orgs.Settings(ctx, s)
	if err != nil {
		return err
	}
	until := holdUntil(settings, p)
	if until <= a.currentTime() {
		return nil
	}
	return errHeld(p, until)
}

func errHeld(p *person, until id.Instant) error {
	return &fault.Error{Kind: fault.Forbidden, Code: string(ObstacleSignIn), Message: "How you sign in was changed at " +
		p.SignInChange.At.String() + " without one of your own factors: your votes are refused until " + until.String()}
}

// holdUntil returns when the votes of a user count again after a change of how the user signs in, or 0 if they count.
func holdUntil(s *org.Settings, p *person) id.Instant {
	if s.VoteHoldHours == 0 || p.SignInChange.Number == 0 {
		return 0
	}
	return p.SignInChange.At + id.Instant(s.VoteHoldHours)*3_600_000
}

func (a *Approvals) isVoter(ctx context.Context, t id.Tenant, who account.ID) (bool, error) {
	m, err := a.members.Membership(ctx, t, who)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return MayVote(m.Role), err
}

// castVote adds a ballot to the record and changes the state of the approval. The voter votes in place of represents,
// or for nobody else if that is "".
func (a *Approvals) castVote(
	ctx context.Context, s *log.State, c *transaction, name ID, r *records.Versioned[record], b Ballot, represents account.ID,
) error {
	var signature *VoteSignature
	if b.Assertion != nil {
		used, thumbprint, registeredAt, err := a.voters.UseChange(ctx, s, b.Account, b.Assertion)
		if err != nil {
			return err
		}
		c.Changes = append(c.Changes, used)
		signature = &VoteSignature{b.Assertion.CredentialID, thumbprint, registeredAt}
	}
	r.Value.Votes = append(r.Value.Votes, Vote{
		DeputyFor: represents,
		Signature: signature,
		Account:   b.Account,
		Email:     b.Email,
		Vote:      b.Vote,
		Comment:   b.Remark.Comment,
		Code:      b.Remark.Code,
		Via:       b.Via,
		At:        a.currentTime(),
	})
	voted := transition{name: "voted", vote: b.Vote, via: b.Via, remark: b.Remark, signed: b.Assertion, deputyFor: represents}
	if b.Vote == Deny {
		return c.endApproval(ctx, name, r, Denied, voted)
	}
	counted, err := a.validVotes(ctx, s, &r.Value)
	if err != nil {
		return err
	}
	if countAgreements(counted) >= r.Value.Quorum {
		r.Value.Status, voted.name = Approved, string(Approved)
	}
	c.appendStatement(name, &r.Value, voted)
	return c.putApproval(*r)
}
