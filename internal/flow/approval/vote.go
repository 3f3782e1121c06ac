package approval

import (
	"context"
	"fmt"

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
	if a.signIns != nil {
		if err := a.signIns.StateSignIn(ctx, t, b.Account); err != nil {
			return Approval{}, fmt.Errorf("vote: %w", err)
		}
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
	may := func(ctx context.Context, s *log.State, r *record) error { return a.checkMayVote(ctx, s, r, b) }
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
			if err := a.castVote(ctx, s, c, name, r, b); err != nil {
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

// checkMayVote checks the voter's current rights, not the ones at the time of the sign-in.
func (a *Approvals) checkMayVote(ctx context.Context, s *log.State, r *record, b Ballot) error {
	may, err := a.isVoter(ctx, s.Identity().Tenant, b.Account)
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.Forbidden, "Your role does not allow this")
	}
	asker, err := a.askersOf(ctx, s, r)
	if err != nil {
		return err
	}
	voter, err := a.findPerson(ctx, b.Account)
	if err != nil {
		return err
	}
	if err := a.checkHold(ctx, s, &voter); err != nil {
		return err
	}
	if asker(&voter) {
		return fault.New(fault.Forbidden, "You cannot decide on your own request")
	}
	for _, v := range r.Votes {
		other, err := a.findPerson(ctx, v.Account)
		if err != nil {
			return err
		}
		if voter.SharesAddress(other.Account) {
			return &fault.Error{Kind: fault.Forbidden, Code: "address_unproved",
				Message: "Another account with your e-mail address has voted, and one of the two addresses is not proved"}
		}
	}
	return nil
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

// castVote adds a ballot to the record and changes the state of the approval.
func (a *Approvals) castVote(
	ctx context.Context, s *log.State, c *transaction, name ID, r *records.Versioned[record], b Ballot,
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
		Signature: signature,
		Account:   b.Account,
		Email:     b.Email,
		Vote:      b.Vote,
		Comment:   b.Remark.Comment,
		Code:      b.Remark.Code,
		At:        a.currentTime(),
	})
	voted := transition{name: "voted", vote: b.Vote, remark: b.Remark, signed: b.Assertion}
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
