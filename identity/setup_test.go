package identity_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/operate/provision"
)

const setupPath = "/v1/id/setup"

// beginSetup returns a setup token as the service prints it.
func (w *world) beginSetup() string {
	w.t.Helper()
	token, err := w.setup.NewToken(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *world) setUp(token, slug, email, password string) *httptest.ResponseRecorder {
	return w.call("POST", setupPath, `{"token":"`+token+`","organization":{"name":"Red","slug":"`+slug+`"},"email":"`+email+
		`","password":"`+password+`"}`)
}

type setUpAnswer struct {
	signedIn
	Origin string `json:"origin"`
	LogKey string `json:"log_key"`
	Agent  struct {
		AgentID    string `json:"agent_id"`
		KeyID      string `json:"key_id"`
		PrivateKey string `json:"private_key_b64"`
		PublicKey  string `json:"public_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

func TestSetup(t *testing.T) {
	w := newWorld(t)
	token := w.beginSetup()
	answer := w.setUp(token, "red", email, password)
	var got setUpAnswer
	w.decode(answer, 201, &got)
	if got.Account.Email != email || got.User.Role != "owner" || got.Organization.Slug != "red" || got.Organization.Name != "Red" ||
		len(got.Organizations) != 1 || got.IngestKey.Secret == "" || got.Agent.PrivateKey == "" || !strings.HasPrefix(got.LogKey, got.Origin) {
		t.Errorf("got %+v", got)
	}
	var again signedIn
	w.decode(w.call("GET", me, "", "Cookie", w.cookie(answer)), 200, &again)
	if again.Organization != got.Organization || again.MayFound {
		t.Errorf("me: got %+v", again)
	}
	w.signedIn(email, password)
	answers(t, "again", w.setUp(token, "blue", "bob@example.com", password), 409, `{"error":"The service is already set up","code":"set_up"}`)
	if again := w.beginSetup(); again != "" {
		t.Errorf("got a token for a service that is set up")
	}
	for _, secret := range []string{token, password, got.IngestKey.Secret, got.Agent.PrivateKey} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("a secret is in the log")
		}
	}
}

func TestSetupRefuses(t *testing.T) {
	w := newWorld(t)
	const invalid = "Invalid setup token: the service prints a new one at its next start"
	answers(t, "no token was made", w.setUp("", "red", email, password), 401, refusal(invalid))
	old := w.beginSetup()
	token := w.beginSetup()
	for name, c := range map[string]struct {
		token, slug, email, password string
		status                       int
		message                      string
	}{
		"no token":        {"", "red", email, password, 401, invalid},
		"a token before":  {old, "red", email, password, 401, invalid},
		"another token":   {strings.Repeat("a", 43), "red", email, password, 401, invalid},
		"a longer token":  {token + "a", "red", email, password, 401, invalid},
		"no password":     {token, "red", email, "", 422, "The password must have at least 10 characters and at most 1024 bytes"},
		"common password": {token, "red", email, "1234567890", 422, "The password is one of the 100,000 most common"},
		"name":            {token, "red", email, email, 422, "The password must not be the e-mail address or the part before its @"},
		"address":         {token, "red", "ann", password, 422, "The e-mail address is malformed"},
		"slug":            {token, "R", email, password, 422, "slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID"},
	} {
		answers(t, name, w.setUp(c.token, c.slug, c.email, c.password), c.status, refusal(c.message))
	}
	answers(t, "unknown member", w.call("POST", setupPath, `{"tokens":""}`), 422, refusal(`Member \"tokens\" is not known`))
	answers(t, "another site", w.call("POST", setupPath, `{}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403,
		refusal("Request of another origin"))
	w.Pass(provision.SetupLife)
	answers(t, "late", w.setUp(token, "red", email, password), 401, refusal(invalid))
	token = w.beginSetup()
	if answer := w.setUp(token, "red", email, password); answer.Code != 201 { // the refusals left nothing behind
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

// An organization created by the operator invalidates the token.
func TestSetupAfterAPlatformCall(t *testing.T) {
	w := newWorld(t)
	token := w.beginSetup()
	w.organization("red")
	answers(t, "late", w.setUp(token, "blue", "bob@example.com", password), 409, `{"error":"The service is already set up","code":"set_up"}`)
}

// Of many concurrent calls with the token, exactly one sets up the service, and the others create no account.
func TestSetupRaced(t *testing.T) {
	w := newWorld(t)
	token := w.beginSetup()
	const racers = 16
	var codes [racers]int
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range racers {
		group.Go(func() {
			<-begin
			letter := string(rune('a' + i))
			codes[i] = w.setUp(token, "red-"+letter, letter+"@example.com", password).Code
		})
	}
	close(begin)
	group.Wait()
	won := 0
	for i, code := range codes {
		if code == 201 {
			won++
		}
		_, err := w.accounts.Find(t.Context(), string(rune('a'+i))+"@example.com")
		if (err == nil) != (code == 201) {
			t.Errorf("%d: got %d, and the account: %v", i, code, err)
		}
	}
	if won != 1 {
		t.Errorf("%d set up the service: %v", won, codes)
	}
	w.Pass(time.Minute)
	if again := w.beginSetup(); again != "" {
		t.Error("got another token")
	}
}
