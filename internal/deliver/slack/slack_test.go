package slack_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/deliver/slack"
)

// The example of Slack's documentation: its secret, its time, its body and its signature.
const (
	exampleSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	exampleTime      = 1531420618
	exampleSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	exampleBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&" +
		"user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F" +
		"T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

func TestSignature(t *testing.T) {
	sent := time.Unix(exampleTime, 0)
	for name, tc := range map[string]struct {
		change func(http.Header)
		secret string
		body   string
		age    time.Duration
		want   bool
	}{
		"as documented":      {want: true},
		"five minutes later": {age: 5 * time.Minute, want: true},
		"a clock behind":     {age: -5 * time.Minute, want: true},
		"too old":            {age: 5*time.Minute + 1},
		"from the future":    {age: -5*time.Minute - 1},
		"another secret":     {secret: "8f742231b10e8888abcd99yyyzzz85a6"},
		"another body":       {body: exampleBody + "&"},
		"no signature":       {change: func(h http.Header) { h.Del("X-Slack-Signature") }},
		"no time":            {change: func(h http.Header) { h.Del("X-Slack-Request-Timestamp") }},
		"two signatures":     {change: func(h http.Header) { h.Add("X-Slack-Signature", exampleSignature) }},
		"two times":          {change: func(h http.Header) { h.Add("X-Slack-Request-Timestamp", strconv.Itoa(exampleTime)) }},
		"another time":       {change: func(h http.Header) { h.Set("X-Slack-Request-Timestamp", strconv.Itoa(exampleTime+1)) }},
		"a signed time":      {change: func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "+"+strconv.Itoa(exampleTime)) }},
		"no number":          {change: func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "now") }},
		"a huge time":        {change: func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "18446744073709551615") }},
		"another version":    {change: func(h http.Header) { h.Set("X-Slack-Signature", "v1"+exampleSignature[2:]) }},
		"cut":                {change: func(h http.Header) { h.Set("X-Slack-Signature", exampleSignature[:65]) }},
		"empty":              {change: func(h http.Header) { h.Set("X-Slack-Signature", "v0=") }},
	} {
		h := http.Header{}
		h.Set("X-Slack-Signature", exampleSignature)
		h.Set("X-Slack-Request-Timestamp", strconv.Itoa(exampleTime))
		if tc.change != nil {
			tc.change(h)
		}
		secret, body := tc.secret, tc.body
		if secret == "" {
			secret = exampleSecret
		}
		if body == "" {
			body = exampleBody
		}
		s, ok := slack.ReadSignature(h, sent.Add(tc.age))
		if got := ok && s.Verify([]byte(secret), []byte(body)); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
		if s.Verify(nil, []byte(body)) {
			t.Errorf("%s: an empty secret verifies", name)
		}
	}
}

// payload has the members that Slack documents for a press of a button in a message.
const payload = `{"type":"block_actions","user":{"id":"UA8RXUSPL","username":"jtorrance","name":"jtorrance","team_id":"T9TK3CUKW"},` +
	`"api_app_id":"AABA1ABCD","token":"9s8d9as89d8as9d8as989","container":{"type":"message","message_ts":"1548261231.000200",` +
	`"channel_id":"CBR2V3XEX","is_ephemeral":false},"trigger_id":"12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",` +
	`"team":{"id":"T9TK3CUKW","domain":"example"},"enterprise":null,"is_enterprise_install":false,` +
	`"channel":{"id":"CBR2V3XEX","name":"review-updates"},"message":{"bot_id":"BAH5CA16Z","type":"message","text":"t","ts":"1548261231.000200"},` +
	`"state":{"values":{}},"response_url":"https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209",` +
	`"actions":[{"action_id":"approve","block_id":"=qXel","text":{"type":"plain_text","text":"Approve","emoji":false},` +
	`"value":"apr_1 00","type":"button","action_ts":"1548426417.840180"}]}`

func form(payload string) []byte { return []byte(url.Values{"payload": {payload}}.Encode()) }

func TestParsePress(t *testing.T) {
	want := slack.Press{User: slack.User{Team: "T9TK3CUKW", ID: "UA8RXUSPL"}, Name: "jtorrance", Action: "approve", Value: "apr_1 00",
		ResponseURL: "https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209"}
	for name, change := range map[string]func(string) string{
		"as documented":  func(s string) string { return s },
		"without a team": func(s string) string { return strings.Replace(s, `{"id":"T9TK3CUKW","domain":"example"}`, "null", 1) },
		"no username":    func(s string) string { return strings.Replace(s, `"username":"jtorrance"`, `"username":""`, 1) },
	} {
		if got, ok, err := slack.ParsePress(form(change(payload))); got != want || !ok || err != nil {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, err)
		}
	}
	// Slack sends the ID of the Enterprise organization as the user's team, and the workspace in which the button was pressed as
	// the team. In a channel that organizations share, the two are of different organizations.
	for _, team := range []string{"E1", "T2"} {
		want.User.Team = team
		body := form(strings.Replace(payload, `"team_id":"T9TK3CUKW"`, `"team_id":"`+team+`"`, 1))
		if got, ok, err := slack.ParsePress(body); got != want || !ok || err != nil {
			t.Errorf("team %s: got %+v, %v, %v", team, got, ok, err)
		}
	}
	for name, body := range map[string]string{
		"a button with an address": strings.Replace(payload, `"value":"apr_1 00",`, "", 1),
		"a modal":                  `{"type":"view_submission","user":{"id":"U1"}}`,
		"a legacy message":         strings.Replace(payload, "block_actions", "interactive_message", 1),
		"two buttons":              strings.Replace(payload, `"actions":[`, `"actions":[{"action_id":"deny","value":"x"},`, 1),
	} {
		if got, ok, err := slack.ParsePress(form(body)); ok || err != nil {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, err)
		}
	}
	for name, body := range map[string][]byte{
		"empty":            nil,
		"JSON":             []byte(payload),
		"no payload":       []byte("token=1"),
		"two payloads":     append(form(payload), "&payload=%7B%7D"...),
		"not JSON":         form("{"),
		"a number":         form("7"),
		"a semicolon":      []byte("payload=%7B%7D;a=b"),
		"a user elsewhere": form(strings.Replace(payload, "UA8RXUSPL", "U1/../U2", 1)),
		"a long user":      form(strings.Replace(payload, "UA8RXUSPL", strings.Repeat("U", 33), 1)),
		"no user":          form(strings.Replace(payload, `"id":"UA8RXUSPL",`, "", 1)),
	} {
		if got, ok, err := slack.ParsePress(body); ok || !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, err)
		}
	}
	long, _, err := slack.ParsePress(form(strings.Replace(payload, `"username":"jtorrance"`, `"username":"`+strings.Repeat("é", 500)+`"`, 1)))
	if err != nil || long.Name != strings.Repeat("é", 80) {
		t.Errorf("a long name: got %q, %v", long.Name, err)
	}
}

func TestAllowsResponse(t *testing.T) {
	for address, want := range map[string]bool{
		"https://hooks.slack.com/actions/T1/2/3":               true,
		"http://hooks.slack.com/actions/T1/2/3":                false,
		"https://hooks.slack.com:8443/actions":                 false,
		"https://hooks.slack.com.evil.example/a":               false,
		"https://hooks.slack.com@evil.example/a":               false,
		"https://a@hooks.slack.com/a":                          false,
		"https://169.254.169.254/latest/meta-data":             false,
		"https://HOOKS.slack.com/a":                            false,
		"https://hooks.slack.com":                              false,
		"https:hooks.slack.com/a":                              false,
		"https://hooks.slack.com/a#b":                          false,
		"https://hooks.slack.com\\@evil.example/":              false,
		"https://hooks.slack.com/" + strings.Repeat("a", 2048): false,
		"": false, "//hooks.slack.com/a": false, "javascript:alert(1)": false,
	} {
		if got := slack.AllowsResponse(address); got != want {
			t.Errorf("%q: got %v", address, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	text := "Approved by " + slack.Escape("<!channel> & `x` \u202e") + " " + slack.Link("https://ledger.example/a", "Open")
	want := `"text":"Approved by &lt;!channel&gt; &amp; ˋxˋ ` + "\ufffd" + ` <https://ledger.example/a|Open>"}`
	if got := string(slack.Whisper(text)); got != `{"response_type":"ephemeral","replace_original":false,`+want {
		t.Errorf("got %s", got)
	}
	if got := string(slack.Replacement(text)); got != `{"replace_original":true,`+want {
		t.Errorf("got %s", got)
	}
}

// No body makes the parser fail, and what it returns is within its bounds.
func FuzzParsePress(f *testing.F) {
	f.Add(form(payload))
	f.Add([]byte(payload))
	f.Add([]byte("payload=%7B%22type%22%3A%22block_actions%22%7D"))
	f.Add([]byte("payload=%ff%00&payload="))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, ok, err := slack.ParsePress(body)
		switch {
		case err != nil && (ok || !fault.Is(err, fault.Invalid)):
			t.Errorf("got %v with %v", ok, err)
		case ok && (!p.User.Valid() || p.Value == "" || len([]rune(p.Name)) > 80):
			t.Errorf("got %+v", p)
		case !ok && p != slack.Press{}:
			t.Errorf("got %+v for no press", p)
		}
	})
}
