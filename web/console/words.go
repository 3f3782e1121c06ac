package console

import (
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// statusWords describes the status of an approval.
func statusWords(status string) string {
	switch status {
	case "pending":
		return "waiting for votes"
	case "approved":
		return "approved, not used yet"
	case "consumed":
		return "approved and used"
	case "expired":
		return "expired"
	case "cancelled":
		return "cancelled by the agent"
	case "revoked":
		return "revoked by a member"
	case "invalidated":
		return "no longer valid: the active policy does not require it"
	}
	return status
}

// statuses returns the values of the filter.
func statuses() []page.Option {
	options := []page.Option{{Value: "", Title: "any"}}
	for _, s := range []string{"approved", "consumed", "denied", "expired", "cancelled", "revoked",
		"invalidated"} {
		options = append(options, page.Option{Value: s, Title: statusWords(s)})
	}
	return options
}

// deputyWords explains why a deputyship has no effect. It returns "" if it has one now or will have one.
func deputyWords(state string) string {
	switch state {
	case "suspended":
		return "One of the two is suspended."
	case "role":
		return "The deputy's own role votes, so the deputy has a vote of their own."
	case "taken_over":
		return "The account was taken over after the deputy was named."
	}
	return ""
}

// obstacleWords explains why a user may not vote.
func obstacleWords(whyNot string) string {
	switch whyNot {
	case "decided":
		return "It has already been decided."
	case "role":
		return "Your role does not vote. Owners, admins and approvers do, and their deputies."
	case "own_request":
		return "This counts as your own request: you created the agent, its key or the ingest key, or the agent acts " +
			"for you, or it was made by the member whose deputy you are. Someone else has to decide."
	case "sign_in_changed":
		return "How you sign in was changed recently without one of your own factors. The organization rejects your votes " +
			"for some time after such a change. Ask another approver."
	case "already_voted":
		return "You have already voted on this."
	case "deputy_voted":
		return "A member and the deputy have one vote together, and the other one of you has voted. More approvals have to come from others."
	case "organization_inactive":
		return "The operator has deactivated the organization: voting is not possible until it is active again."
	case "":
		return ""
	}
	return "It is " + statusWords(whyNot) + "."
}

// signInChange is a change of a member's sign-in that the member did not prove.
type signInChange struct{ wire.SignInChange }

func describeSignIns(list []wire.SignInChange) []signInChange {
	shown := make([]signInChange, len(list))
	for i := range list {
		shown[i] = signInChange{list[i]}
	}
	return shown
}

// Words describes the change.
func (c signInChange) Words() string {
	by := "An identity provider"
	switch c.By {
	case "operator":
		by = "The operator of this service"
	case "mail":
		by = "Someone with a mailed link"
	}
	switch c.Change {
	case "password_set":
		return by + " set a new password"
	case "second_factors_removed":
		return by + " removed all passkeys and recovery codes"
	case "account_taken_over":
		return by + " proved the address, which ended all earlier ways to sign in"
	}
	return by + " was connected"
}

// leftWords returns the time until an instant, or "" if it has passed.
func leftWords(until id.Instant, now time.Time) string {
	end := until.Time()
	if !now.Before(end) {
		return ""
	}
	left := end.Sub(now)
	switch {
	case left < time.Minute:
		return "less than 1 min"
	case left < time.Hour:
		return fmt.Sprintf("%d min", int(left.Minutes()))
	case left < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(left.Hours()), int(left.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(left.Hours())/24, int(left.Hours())%24)
}
