package console_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

const slackSecret = "8f742231b10e8888abcd99e9ee9985a5"

// slackPress presses a button of a question as a user of Slack, and returns the status of the response.
func slackPress(t *testing.T, s *servicetest.Service, of *servicetest.Organization, user, action, value string) int {
	t.Helper()
	body := url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","user":{"id":%q,"team_id":"T1"},"actions":[{"action_id":%q,"value":%q}]}`, user, action, value)}}.Encode()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/slack/interactions/"+of.ID, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(slackSecret))
	fmt.Fprintf(mac, "v0:%s:%s", at, body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// An owner allows votes from Slack, an approver links a user of Slack and votes by it, and an admin removes the link.
func TestSlackPages(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	key, _, err := seal.LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	s := servicetest.New(t, "--master-key-file", file)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	carl := s.SignIn(s.Red.Join("carl", "approver"))
	requireApproval(ann, 1, "money leaves")
	asked := s.Red.Ask(map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"n": 1}})

	var endpoint struct {
		ID string `json:"endpoint_id"`
	}
	ann.Call("POST", "/v1/console/webhooks", map[string]any{"url": "https://hooks.slack.com/services/1", "events": []string{"approval.pending"}, "format": "slack"}, &endpoint)
	webhook := "/console/webhooks/" + endpoint.ID
	address := s.URL + "/v1/slack/interactions/" + s.Red.ID
	ann.Get(webhook).Want(t, "off", http.StatusOK, address, "Allow votes from Slack").WantNone(t, "off", "Allow no votes")
	if got := slackPress(t, s, s.Red, "U1", "approve", "x"); got != http.StatusUnauthorized {
		t.Errorf("before: got %d", got)
	}
	ann.Post(webhook, "do", "slack-on", "slack_signing_secret", "short").Want(t, "short", http.StatusUnprocessableEntity, "slack_signing_secret must have 16 to 128 letters and digits")
	ann.Post(webhook, "do", "slack-on", "slack_signing_secret", slackSecret).Want(t, "on", http.StatusSeeOther)
	ann.Get(webhook).Want(t, "on", http.StatusOK, "Replace the secret", "Allow no votes from Slack", "can post other text around such buttons").WantNone(t, "on", slackSecret)

	organization, err := id.ParseOrganization(s.Red.ID)
	if err != nil {
		t.Fatal(err)
	}
	links := slacklink.New(slacklink.Options{Keyring: keyring, Clock: time.Now})
	newOffer := func() string {
		text, err := links.NewOffer(organization, slack.User{Team: "T1", ID: "U1"}, "carl <b>")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const page = "/account/slack"
	const sent = "This link from Slack does nothing here."
	offer := newOffer()
	carl.Get(page).Want(t, "at first", http.StatusOK, "Link a Slack user").WantNone(t, "at first", "Now press a button in Slack", sent)
	carl.Get(page+"?offer="+offer).Want(t, "not begun", http.StatusOK, sent, "tell the owners", "Link a Slack user").WantNone(t, "not begun", "U1", "Link the Slack user")
	carl.Post(page, "do", "link-slack", "offer", offer).Want(t, "not begun", http.StatusConflict, "Begin with")
	carl.Post(page, "do", "open-slack").Want(t, "begin", http.StatusSeeOther)
	carl.Get(page).Want(t, "begun", http.StatusOK, "Now press a button in Slack", "until", "Start again")
	carl.Get(page+"?offer="+offer).Want(t, "a link from before", http.StatusOK, sent).WantNone(t, "a link from before", "U1")
	ann.Get(page).WantNone(t, "another member", "Now press a button in Slack")
	offer = newOffer()
	bob.Get(page+"?offer="+offer).Want(t, "the other organization", http.StatusUnprocessableEntity, "belongs to another organization").WantNone(t, "the other organization", "U1")
	ann.Get(page+"?offer="+offer).Want(t, "another member", http.StatusOK, sent).WantNone(t, "another member", "U1")
	carl.Get(page+"?offer="+offer).Want(t, "offer", http.StatusOK, "carl &lt;b&gt;", "<code>U1</code>", "<code>T1</code>", "will vote in your name", "If somebody sent you the link", "Link the Slack user", "None in <bdi>Red")
	s.Stranger().Get(page+"?offer="+offer).Want(t, "a stranger", http.StatusSeeOther)
	carl.PostFromAnotherSite(page, "do", "link-slack", "offer", offer).Want(t, "another site", http.StatusForbidden)
	carl.Post(page, "do", "link-slack", "offer", offer).Want(t, "link", http.StatusSeeOther)
	carl.Post(page, "do", "link-slack", "offer", offer).Want(t, "again", http.StatusConflict, "Begin with")
	carl.Get(page).Want(t, "linked", http.StatusOK, "carl &lt;b&gt;", "U1", "Remove")
	ann.Get(page).WantNone(t, "another member", "U1")

	if got := slackPress(t, s, s.Red, "U1", "approve", asked.ID+" "+asked.ActionDigest); got != http.StatusOK {
		t.Errorf("press: got %d", got)
	}
	ann.Get("/console/approvals/"+asked.ID).Want(t, "voted", http.StatusOK, "in Slack", "carl")

	var members struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	ann.Call("GET", "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	for _, m := range members.Members {
		if !strings.HasPrefix(m.Email, "carl") {
			continue
		}
		ann.Get("/console/members/"+m.ID).Want(t, "member", http.StatusOK, "Slack users that vote in the member", "U1")
		ann.Post("/console/members/"+m.ID, "do", "unlink-slack", "slack_user", "T1/U1").Want(t, "unlink", http.StatusSeeOther)
		ann.Get("/console/members/"+m.ID).WantNone(t, "unlinked", "U1")
	}
	carl.Get(page).Want(t, "unlinked", http.StatusOK, "None in <bdi>Red")
	ann.Post(webhook, "do", "slack-off").Want(t, "off", http.StatusSeeOther)
	if got := slackPress(t, s, s.Red, "U1", "approve", "x"); got != http.StatusUnauthorized {
		t.Errorf("afterwards: got %d", got)
	}
}
