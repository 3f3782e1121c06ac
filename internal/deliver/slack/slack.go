// Package slack reads the requests that Slack sends when a user presses a button of a message, and writes the answers. It
// hides the wire format: how a request is signed, how its payload is encoded and what an answer looks like.
//
// Invariants:
//
//   - A request is authentic only if its signature, made with the signing secret of the Slack app, covers the body and a time
//     within five minutes. Signatures are compared in constant time.
//   - An answer is sent only to a host of Slack (ResponseURL).
//   - A text in an answer mentions nobody and contains no link, except those that the service writes.
//
// See https://docs.slack.dev/authentication/verifying-requests-from-slack,
// https://docs.slack.dev/interactivity/handling-user-interaction,
// https://docs.slack.dev/reference/interaction-payloads/block_actions-payload and
// https://docs.slack.dev/apis/slack-connect.
package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
)

// MaxBody is the largest request in bytes. Slack repeats the message with the button, percent-encoded.
const MaxBody = 256 << 10

// maxAge is how far the time of a request may be from now.
const maxAge = 5 * time.Minute

const (
	timeHeader      = "X-Slack-Request-Timestamp"
	signatureHeader = "X-Slack-Signature"
	version         = "v0"
)

// Signature is the signature of a request, which was not verified yet.
type Signature struct {
	time string // seconds since 1970, as sent
	mac  []byte
}

// ReadSignature returns the signature in the header of a request. ok is false if it has none, or if its time is not within
// five minutes of now.
func ReadSignature(h http.Header, now time.Time) (s Signature, ok bool) {
	times, signatures := h.Values(timeHeader), h.Values(signatureHeader)
	if len(times) != 1 || len(signatures) != 1 {
		return s, false
	}
	at, err := strconv.ParseUint(times[0], 10, 40)
	if err != nil || now.Sub(time.Unix(int64(at), 0)).Abs() > maxAge {
		return s, false
	}
	text, ok := strings.CutPrefix(signatures[0], version+"=")
	mac, err := hex.DecodeString(text)
	return Signature{times[0], mac}, ok && err == nil && len(mac) == sha256.Size
}

// Verify reports whether the signature is over body, with a secret.
func (s Signature) Verify(secret, body []byte) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(version + ":" + s.time + ":"))
	mac.Write(body)
	return len(secret) > 0 && hmac.Equal(mac.Sum(nil), s.mac)
}

// User is a user of Slack.
type User struct {
	Team string `json:"team_id"` // the user's own workspace, or Enterprise organization
	ID   string `json:"user_id"`
}

// Valid reports whether the identifiers have the form of Slack's.
func (u User) Valid() bool { return isID(u.Team) && isID(u.ID) }

func isID(s string) bool {
	return len(s) >= 2 && len(s) <= 32 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// Press is a press of a button.
type Press struct {
	User        User
	Name        string // that Slack shows for the user, at most 80 code points; a text that the user chose
	Action      string // action_id of the button
	Value       string // of the button
	ResponseURL string // where the answer is sent (ResponseURL.Allowed)
}

// interaction is the part of a payload that is read. Other members are ignored, as Slack adds some from time to time.
type interaction struct {
	Type string `json:"type"`
	// User has the user's own team. The member team of the payload is not read: it is the workspace in which the button was
	// pressed, and in a channel that organizations share (Slack Connect) also users of others press it. In an Enterprise
	// organization, the user's team is the organization, in which the user has one ID in all workspaces.
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
		TeamID   string `json:"team_id"`
	} `json:"user"`
	ResponseURL string `json:"response_url"`
	Actions     []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
}

// ParsePress parses the body of an authentic request. ok is false for an interaction that is not the press of a button with
// a value, for example of a button that only opens an address. It returns fault.Invalid for a malformed body.
func ParsePress(body []byte) (p Press, ok bool, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return p, false, fault.Wrap(fault.Invalid, "The body must be a form with one payload", err)
	}
	var in interaction
	if err := json.Unmarshal([]byte(form.Get("payload")), &in, jsontext.AllowInvalidUTF8(true)); err != nil {
		return p, false, fault.Wrap(fault.Invalid, "The payload is not an interaction of Slack", err)
	}
	if in.Type != "block_actions" || len(in.Actions) != 1 || in.Actions[0].Value == "" {
		return p, false, nil
	}
	p = Press{User: User{Team: in.User.TeamID, ID: in.User.ID}, Name: cut(in.User.Username), Action: in.Actions[0].ID,
		Value: in.Actions[0].Value, ResponseURL: in.ResponseURL}
	if p.Name == "" {
		p.Name = cut(in.User.Name)
	}
	if !p.User.Valid() {
		return Press{}, false, fault.New(fault.Invalid, "The payload is not an interaction of Slack")
	}
	return p, true, nil
}

// maxName bounds the name of a user, in code points.
const maxName = 80

func cut(name string) string {
	if name = strings.ToValidUTF8(name, "\ufffd"); utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName])
	}
	return name
}

// AllowsResponse reports whether an answer may be sent to an address: it is https at Slack's host for answers.
func AllowsResponse(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host == "hooks.slack.com" && u.User == nil && u.Opaque == "" &&
		u.Fragment == "" && strings.HasPrefix(u.Path, "/") && len(address) <= 2048
}

// answer is a message for a response URL.
type answer struct {
	Type    string `json:"response_type,omitzero"`
	Replace bool   `json:"replace_original"`
	Text    string `json:"text"` // mrkdwn
}

// Whisper returns an answer that only the user sees. text is mrkdwn.
func Whisper(text string) []byte { return write(answer{Type: "ephemeral", Text: text}) }

// Replacement returns an answer that replaces the message with the button. text is mrkdwn.
func Replacement(text string) []byte { return write(answer{Replace: true, Text: text}) }

func write(a answer) []byte {
	body, err := json.Marshal(a, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // its members are texts
	}
	return body
}

// Link returns a link with a title that needs no escape.
func Link(address, title string) string { return "<" + address + "|" + title + ">" }

// Escape replaces the characters that mark mentions, links and code, and the characters that reverse the direction of text.
func Escape(s string) string {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ").Replace(s)
	return strings.Map(func(r rune) rune {
		if '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' {
			return utf8.RuneError
		}
		return r
	}, escaped)
}

// WithoutMarks replaces the marks of bold, italic and struck text in a text among formatted ones.
func WithoutMarks(s string) string {
	return strings.NewReplacer("*", "∗", "_", "ˍ", "~", "∼").Replace(s)
}
