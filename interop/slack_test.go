package interop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/agentledger/agentledger/internal/deliver/slack"
)

// slackRequest is a request of a Slack app.
type slackRequest struct {
	secret string
	header http.Header
	body   []byte
}

func newSlackRequest(r *rand.Rand, at time.Time) *slackRequest {
	body := make([]byte, r.IntN(300))
	for i := range body {
		body[i] = byte(r.UintN(256))
	}
	s := &slackRequest{secret: fmt.Sprintf("%032x", r.Uint64()), header: make(http.Header), body: body}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	s.header.Set("X-Slack-Request-Timestamp", stamp)
	s.header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return s
}

// verifiedBySlackGo reports whether the library slack-go takes the request for one of Slack.
func (s *slackRequest) verifiedBySlackGo() bool {
	v, err := slackgo.NewSecretsVerifier(s.header, s.secret)
	if err == nil {
		_, _ = v.Write(s.body)
		err = v.Ensure()
	}
	return err == nil
}

func (s *slackRequest) verified() bool {
	signature, ok := slack.ReadSignature(s.header, time.Now())
	return ok && signature.Verify([]byte(s.secret), s.body)
}

// The service and the library slack-go accept the same requests.
func TestSlackSignatures(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	flip := func(text string) string {
		i := r.IntN(len(text))
		return text[:i] + string("0123456789abcdefg"[r.IntN(17)]) + text[i+1:]
	}
	changes := map[string]func(*slackRequest){
		"nothing":       func(*slackRequest) {},
		"a secret":      func(s *slackRequest) { s.secret = flip(s.secret) },
		"no secret":     func(s *slackRequest) { s.secret = "" },
		"a digit":       func(s *slackRequest) { s.header.Set("X-Slack-Signature", flip(s.header.Get("X-Slack-Signature"))) },
		"a shorter one": func(s *slackRequest) { s.header.Set("X-Slack-Signature", s.header.Get("X-Slack-Signature")[:65]) },
		"capitals": func(s *slackRequest) {
			s.header.Set("X-Slack-Signature", "v0="+strings.ToUpper(s.header.Get("X-Slack-Signature")[3:]))
		},
		"another version": func(s *slackRequest) { s.header.Set("X-Slack-Signature", "v1="+s.header.Get("X-Slack-Signature")[3:]) },
		"no signature":    func(s *slackRequest) { s.header.Del("X-Slack-Signature") },
		"no time":         func(s *slackRequest) { s.header.Del("X-Slack-Request-Timestamp") },
		"another time": func(s *slackRequest) {
			s.header.Set("X-Slack-Request-Timestamp", flip(s.header.Get("X-Slack-Request-Timestamp")))
		},
		"a byte of the body": func(s *slackRequest) { s.body = append(s.body, byte(r.UintN(256))) },
		"an old request":     func(s *slackRequest) { *s = *newSlackRequest(r, time.Now().Add(-6*time.Minute)) },
		"an early request":   func(s *slackRequest) { *s = *newSlackRequest(r, time.Now().Add(6*time.Minute)) },
		"a late request":     func(s *slackRequest) { *s = *newSlackRequest(r, time.Now().Add(-4*time.Minute)) },
	}
	accepted := 0
	for name, change := range changes {
		for range 200 {
			s := newSlackRequest(r, time.Now())
			change(s)
			want := s.verifiedBySlackGo()
			if got := s.verified(); got != want {
				t.Errorf("%s: got %v, slack-go says %v: %q", name, got, want, s.header)
			}
			if want {
				accepted++
			}
		}
	}
	if accepted < 600 || accepted > 1200 {
		t.Errorf("got %d accepted requests of %d", accepted, 200*len(changes))
	}
}

// The service reads the press of a button, and writes its answer, as slack-go does.
func TestSlackPayloads(t *testing.T) {
	const payload = `{"type":"block_actions","user":{"id":"UA8RXUSPL","username":"jtorrance","name":"jtorrance","team_id":"E1"},"team":{"id":"T9TK3CUKW","domain":"example"},` +
		`"response_url":"https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209","actions":[{"action_id":"approve","block_id":"=qXel",` +
		`"text":{"type":"plain_text","text":"Approve","emoji":false},"value":"apr_1 00","type":"button","action_ts":"1548426417.840180"}]}`
	var want slackgo.InteractionCallback
	if err := json.Unmarshal([]byte(payload), &want); err != nil {
		t.Fatal(err)
	}
	got, ok, err := slack.ParsePress([]byte(url.Values{"payload": {payload}}.Encode()))
	if err != nil || !ok {
		t.Fatalf("got %v, %v", ok, err)
	}
	action := want.ActionCallback.BlockActions[0]
	if got != (slack.Press{User: slack.User{Team: want.User.TeamID, ID: want.User.ID}, Name: want.User.Name, Action: action.ActionID, Value: action.Value, ResponseURL: want.ResponseURL}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for body, replaces := range map[string]bool{string(slack.Whisper("a *b*")): false, string(slack.Replacement("a *b*")): true} {
		var m slackgo.WebhookMessage
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Text != "a *b*" || m.ReplaceOriginal != replaces || (m.ResponseType == slackgo.ResponseTypeEphemeral) == replaces {
			t.Errorf("%s: got %+v, %v", body, m, err)
		}
	}
}
