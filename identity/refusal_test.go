package identity_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

const setPassword = "/v1/id/platform/accounts/password"

// What is wrong with a body is told in the same way by all calls that have one.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	change := organizations + "/" + w.organization("red").OrganizationID
	cookie := w.cookie(w.signIn(email, password))
	for _, route := range [][2]string{{"POST", organizations}, {"PATCH", change}, {"POST", setPassword}, {"POST", "/v1/id/platform/clock"}, {"POST", change + "/clock"}, {"POST", login}, {"POST", setupPath}, {"POST", forgotPath}, {"POST", resetPath}, {"POST", stepUp}, {"PATCH", accountPath}, {"POST", accountPassword}, {"POST", emailPath}, {"POST", confirmPath}} {
		for _, c := range []struct {
			body, name, value string // of a header
			status            int
			message           string
		}{
			{strings.Repeat(" ", 64<<10+1), "Content-Type", "text/plain", 413, "The body is too large"},
			{`{}`, "Content-Type", "text/plain", 415, "Content-Type must be application/json"},
			{`{}`, "Content-Encoding", "gzip", 415, "Content-Encoding must be identity"},
			{`{"colour":"red"}`, "Content-Type", "application/json", 422, `Member \"colour\" is not known`},
		} {
			answer := w.call(route[0], route[1], c.body, c.name, c.value, "X-Platform-Secret", platformSecret, "Cookie", cookie)
			answers(t, route[1], answer, c.status, refusal(c.message))
		}
		late := httptest.NewRequest(route[0], route[1], iotest.ErrReader(os.ErrDeadlineExceeded))
		late.Header.Set("X-Platform-Secret", platformSecret)
		late.Header.Set("Cookie", cookie)
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, late)
		answers(t, route[1], answer, 408, refusal("The body took too long to arrive"))
	}
}

// unlucky people fail with one error.
type unlucky struct {
	identity.People
	err error
}

func (u unlucky) SetPassword(context.Context, string, string, ...string) error { return u.err }
func (u unlucky) Find(context.Context, string) (account.Account, error) {
	return account.Account{}, nil
}
func (u unlucky) Memberships(context.Context, account.ID) ([]account.Membership, error) {
	return nil, nil
}

func (u unlucky) AuthenticateIn(context.Context, account.Browser, string, string, netip.Addr) (account.Account, error) {
	return account.Account{}, u.err
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		body   string // $ is the request id
	}{
		{fault.New(fault.Conflict, "The account was changed meanwhile"), 409, `{"error":"The account was changed meanwhile"}`},
		{errors.New("a cause"), 500, `{"error":"Internal error","request_id":"$"}`},
		{fault.Wrap(fault.Unavailable, "Accounts can't be read", errors.New("a cause")), 503, `{"error":"Accounts can't be read","code":"unavailable","request_id":"$"}`},
	} {
		w := newWorld(t, func(o *identity.Options) { o.People = unlucky{o.People, c.err} })
		answer := w.platform("POST", setPassword, `{"email":"`+email+`","password":"`+password+`"}`)
		answers(t, setPassword, answer, c.status, strings.Replace(c.body, "$", answer.Header().Get("X-Request-Id"), 1))
		if c.status < 500 {
			continue
		}
		answer = w.signIn(email, password)
		answers(t, login, answer, c.status, strings.Replace(c.body, "$", answer.Header().Get("X-Request-Id"), 1))
	}
}

// A call that looks something up by a member or a header names it if it is missing or empty.
func TestRequiredNames(t *testing.T) {
	w, ann, _ := twoPeople(t)
	for _, body := range []string{`{}`, `{"token":""}`} {
		for _, path := range []string{accept, "/v1/id/auth/reset-password", confirmPath} {
			answers(t, path+" "+body, w.as(ann, "POST", path, body), 422, refusal("token is required"))
		}
	}
	answers(t, "preview", w.call("GET", preview, ""), 422, refusal("X-Invitation-Token is required"))
	answers(t, "preview, empty", w.call("GET", preview, "", "X-Invitation-Token", ""), 422, refusal("X-Invitation-Token is required"))
}
