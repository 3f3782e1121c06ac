package identity_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/storage"
)

const setPassword = "/v1/id/platform/accounts/password"

// All calls with a body report errors in it in the same way.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	change := organizations + "/" + w.organization("red").OrganizationID
	cookie := w.cookie(w.signIn(email, password))
	for _, route := range [][2]string{{"POST", organizations}, {"PATCH", change}, {"POST", setPassword}, {"POST", "/v1/id/platform/clock"}, {"POST", change + "/clock"}, {"POST", login}, {"POST", setupPath}, {"POST", forgotPath}, {"POST", resetPath}, {"POST", stepUp}, {"PATCH", accountPath}, {"POST", accountPassword}, {"POST", emailPath}, {"POST", confirmPath}} {
		for _, c := range []struct {
			body, name, value string // of an additional header
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

// failingStore fails to read the account of an address.
type failingStore struct{ storage.RecordStore }

func (s failingStore) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if kind == "account_email" {
		return storage.Record{}, errors.New("a cause")
	}
	return s.RecordStore.Get(ctx, t, kind, key)
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	for _, c := range []struct {
		store  storage.RecordStore
		status int
		body   string // $ is the request id
	}{
		{outrunStore{w.Store}, 409, `{"error":"The account was changed in the meantime"}`},
		{failingStore{w.Store}, 503, `{"error":"Accounts can't be read","code":"unavailable","request_id":"$"}`},
	} {
		w.serveAccounts(c.store)
		answer := w.platform("POST", setPassword, `{"email":"`+email+`","password":"`+password+`"}`)
		answers(t, setPassword, answer, c.status, strings.Replace(c.body, "$", answer.Header().Get("X-Request-Id"), 1))
		if c.status < 500 {
			continue
		}
		answer = w.signIn(email, password)
		answers(t, login, answer, c.status, strings.Replace(c.body, "$", answer.Header().Get("X-Request-Id"), 1))
	}
	w.serveWith(func(o *identity.Options) { o.Operator.Status = brokenStatus{} })
	answer := w.platform("GET", "/v1/id/platform/status", "")
	answers(t, "a cause without a kind", answer, 500,
		`{"error":"Internal error","request_id":"`+answer.Header().Get("X-Request-Id")+`"}`)
}

// A call that needs a member or a header to look something up names it if it is missing or empty.
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
