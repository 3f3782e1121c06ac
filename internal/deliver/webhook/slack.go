package webhook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
)

// Card is a question for people, which Slack shows as blocks.
type Card struct {
	Approval string // the body loses all texts if the payload of this approval is erased; "" if it has none
	Header   string // such as "Approve acme.refund?"
	Agent    string // the name of who asks
	Tool     string
	Subject  string      // on whose behalf it asks; "" if it does not state that
	Issuer   string      // who names the subject
	Standing string      // of Subject: claimed or verified
	Fields   [][2]string // labels and texts of the agent
	Why      string      // the rule's reason and how many must agree
	Until    id.Instant

	// Ballot is the value of the buttons by which linked users of Slack vote: the approval and the digest of the action. It is
	// "" if the question is only decided on its page.
	Ballot string
}

// Bounds of a message, in code points and fields. Slack rejects a header of more than 150 and a field of more than 2,000
// characters, and a section of more than 10 fields.
const (
	maxDetail = 1500
	maxHeader = 140
	maxField  = 1500
	maxFields = 10
	maxShown  = 400 // of names and reasons
)

// slackMessage is a message for Slack's incoming webhooks.
type slackMessage struct {
	Text   string       `json:"text"` // in notifications, and in programs that do not show blocks
	Blocks []slackBlock `json:"blocks,omitempty"`
}

type slackBlock struct {
	Type     string         `json:"type"`
	Text     *slackText     `json:"text,omitempty"`
	Fields   []slackText    `json:"fields,omitempty"`
	Elements []slackElement `json:"elements,omitempty"`
}

type slackText struct {
	Type  string `json:"type"` // plain_text, in which nothing is formatted, or mrkdwn
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"` // only of plain_text
}

// slackElement is a button, or a text of a context.
type slackElement struct {
	Type   string `json:"type"`
	Style  string `json:"style,omitzero"`
	Text   any    `json:"text"` // a string in a context, a *slackText in a button
	URL    string `json:"url,omitzero"`
	Action string `json:"action_id,omitzero"`
	Value  string `json:"value,omitzero"`
}

// plainSlack returns an escaped text in which Slack formats nothing.
func plainSlack(escaped string) *slackText { return &slackText{"plain_text", escaped, new(false)} }

// slackBody returns a message for Slack and for programs that accept its incoming webhooks. Texts are escaped, so that
// they mention nobody and contain no link. The values of fields are shown as they were sent.
// buttons reports whether the receiver's Slack app may send votes.
func (o *Sender) slackBody(m *Message, buttons bool) ([]byte, error) {
	var text strings.Builder
	text.WriteString(slack.Escape(m.Title))
	if m.Detail != "" {
		fmt.Fprintf(&text, "\n```%s```", slack.Escape(cutText(m.Detail, maxDetail)))
	}
	if m.Path != "" {
		text.WriteString("\n" + o.slackLink(m.Path))
	}
	message := slackMessage{Text: text.String()}
	if m.Card != nil {
		message = o.slackCard(m.Card, m.Path, buttons)
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("write Slack message: %w", err)
	}
	return body, nil
}

// slackLink returns a link to a page of the service.
func (o *Sender) slackLink(path string) string { return "<" + o.pageURL(path) + "|Open>" }

func (o *Sender) pageURL(path string) string { return strings.TrimSuffix(o.publicURL, "/") + path }

// slackCard returns the blocks of a question: header, sentence, fields, why and until when, and buttons. One button opens the
// question. Two more vote, if buttons is set and the card shows the exact action.
func (o *Sender) slackCard(c *Card, path string, buttons bool) slackMessage {
	name, tool, header := escapeWithin(c.Agent, maxShown), escapeWithin(c.Tool, maxShown), escapeWithin(c.Header, maxHeader)
	sentence := fmt.Sprintf("*%s* asks to run `%s`", isolate(slack.WithoutMarks(name)), tool)
	if c.Subject != "" {
		sentence += fmt.Sprintf(" on behalf of `%s` (%s, of `%s`)", isolate(escapeWithin(c.Subject, maxShown)), c.Standing, escapeWithin(c.Issuer, maxShown))
	}
	blocks := []slackBlock{
		{Type: "header", Text: plainSlack(header)},
		{Type: "section", Text: &slackText{Type: "mrkdwn", Text: sentence}},
	}
	var fields []slackText
	for i, f := range c.Fields {
		if i == maxFields-1 && len(c.Fields) > maxFields {
			f = [2]string{"More", fmt.Sprintf("%d more: open to see them", len(c.Fields)-i)}
		}
		if i < maxFields {
			fields = append(fields, *plainSlack(isolate(escapeWithin(f[0], maxShown)) + "\n" + isolate(escapeWithin(f[1], maxField))))
		}
	}
	if len(fields) > 0 {
		blocks = append(blocks, slackBlock{Type: "section", Fields: fields})
	}
	until := c.Until.Time().UTC()
	why := fmt.Sprintf("%s · <!date^%d^until {date_short_pretty}, {time}|until %s UTC>", isolate(slack.WithoutMarks(escapeWithin(c.Why, maxShown))), until.Unix(), until.Format("2 Jan 15:04"))
	blocks = append(blocks,
		slackBlock{Type: "context", Elements: []slackElement{{Type: "mrkdwn", Text: why}}},
		slackBlock{Type: "actions", Elements: o.slackButtons(c, path, buttons && c.isExact())})
	return slackMessage{Text: slack.WithoutMarks(header) + " Asked by " + slack.WithoutMarks(name) + "\n" + o.slackLink(path), Blocks: blocks}
}

// The action IDs of the buttons by which linked users vote.
const (
	SlackApprove = "approve"
	SlackDeny    = "deny"
)

func (o *Sender) slackButtons(c *Card, path string, votes bool) []slackElement {
	open := slackElement{Type: "button", Style: "primary", Text: plainSlack("Open and decide"), URL: o.pageURL(path), Action: "open"}
	if !votes {
		return []slackElement{open}
	}
	open.Style, open.Text = "", plainSlack("Open")
	return []slackElement{
		{Type: "button", Style: "primary", Text: plainSlack("Approve"), Action: SlackApprove, Value: c.Ballot},
		{Type: "button", Style: "danger", Text: plainSlack("Deny"), Action: SlackDeny, Value: c.Ballot},
		open,
	}
}

// isExact reports whether the blocks of a card show the whole action as it was sent: nothing is cut, left out, replaced or
// invisible. A line break counts as invisible, because what follows could be taken for another field.
func (c *Card) isExact() bool {
	if c.Ballot == "" || len(c.Fields) > maxFields || !isShown(c.Agent, maxShown) || !isShown(c.Tool, maxShown) ||
		!isShown(c.Subject, maxShown) || !isShown(c.Issuer, maxShown) {
		return false
	}
	for _, f := range c.Fields {
		if !isShown(f[0], maxShown) || !isShown(f[1], maxField) {
			return false
		}
	}
	return true
}

// isShown reports whether escapeWithin changes nothing that a reader sees.
func isShown(s string, most int) bool {
	invisible := func(r rune) bool { return r == '`' || r == utf8.RuneError || !unicode.IsPrint(r) }
	return !strings.ContainsFunc(s, invisible) && utf8.RuneCountInString(slack.Escape(s)) <= most
}

// erasedCard returns the body of a question whose payload was erased.
func (o *Sender) erasedCard(approval string) ([]byte, error) {
	return json.Marshal(slackMessage{Text: "An approval was requested. Its payload was erased.\n" + o.slackLink("/console/approvals/"+approval)})
}

// escapeWithin is slack.Escape for a text that is cut so that its escaped form has at most a number of code points, and two
// for the mark of the cut.
func escapeWithin(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		escaped := slack.Escape(string(r))
		if most -= utf8.RuneCountInString(escaped); most < 0 {
			b.WriteString(" …")
			break
		}
		b.WriteString(escaped)
	}
	return b.String()
}

// isolate keeps the direction of a text from changing the order of what surrounds it.
func isolate(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}) {
		return "\u2068" + s + "\u2069"
	}
	return s
}

// cutText shortens a text to a number of code points and marks the cut.
func cutText(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + " …"
}
