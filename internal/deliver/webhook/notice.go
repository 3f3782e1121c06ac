package webhook

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

// noticesFor returns the deliveries of a message to the organization's endpoints.
func (o *Sender) noticesFor(
	organization id.Organization, m *Message, all *endpointsRecord,
) (names []ID, notices []*delivery, err error) {
	for i := range all.Endpoints {
		to := &all.Endpoints[i]
		if to.Disabled != "" || !to.matches(m) {
			continue
		}
		name, d, err := o.newNotice(organization, m, to)
		if err != nil {
			return nil, nil, err
		}
		names, notices = append(names, name), append(notices, d)
	}
	return names, notices, nil
}

// newNotice returns a delivery to one endpoint.
func (o *Sender) newNotice(organization id.Organization, m *Message, to *endpointRecord) (ID, *delivery, error) {
	name, d, err := o.newDelivery(organization, *m)
	if err != nil {
		return "", nil, err
	}
	d.Endpoint, d.Lane = to.ID, to.Lane
	if to.Format == FormatSlack {
		d.Body, err = o.slackBody(m)
	}
	return name, d, err
}

// maxDetail bounds the detail in a Slack message, in code points.
const maxDetail = 1500

// slackBody returns a message for Slack and for programs that accept its incoming webhooks. Texts are escaped, so that
// they mention nobody and contain no link. The detail is shown as it was sent: its numbers are not interpreted.
func (o *Sender) slackBody(m *Message) ([]byte, error) {
	var text strings.Builder
	text.WriteString(escapeSlack(m.Title))
	if m.Detail != "" {
		fmt.Fprintf(&text, "\n```%s```", escapeSlack(cutText(m.Detail, maxDetail)))
	}
	if m.Path != "" {
		fmt.Fprintf(&text, "\n<%s%s|%s>", strings.TrimSuffix(o.publicURL, "/"), m.Path, "Open")
	}
	body, err := json.Marshal(map[string]string{"text": text.String()})
	if err != nil {
		return nil, fmt.Errorf("write Slack message: %w", err)
	}
	return body, nil
}

// escapeSlack replaces the characters that mark mentions, links and code in Slack, and the characters that reverse the
// direction of text.
func escapeSlack(s string) string {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ").Replace(s)
	return strings.Map(func(r rune) rune {
		if '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' {
			return utf8.RuneError
		}
		return r
	}, escaped)
}

// cutText shortens a text to a number of code points and marks the cut.
func cutText(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + " …"
}

// target is where an attempt is sent and which keys sign it.
type target struct {
	url     string
	keys    []signingKeys // that sign, latest first
	context string        // of their seals
	keyID   string        // of the latest
}

// The failure reasons of deliveries whose endpoint accepts none.
const (
	endpointDisabled = "the endpoint is disabled"
	endpointDeleted  = "the endpoint is deleted"
)

// findTarget returns the current target of a delivery, or why there is none.
func (o *Sender) findTarget(ctx context.Context, t id.Tenant, d *delivery) (to target, reason string, err error) {
	if d.Endpoint == "" {
		to, err = o.callbackTarget(ctx, t, d)
		return to, "", err
	}
	stored, err := o.endpoints.Get(ctx, t, "")
	if err != nil {
		return target{}, "", err
	}
	at := stored.Value.indexOf(d.Endpoint)
	if at < 0 {
		return target{}, endpointDeleted, nil
	}
	e := &stored.Value.Endpoints[at]
	if e.Disabled != "" && d.Type != testType {
		return target{}, endpointDisabled, nil
	}
	context := endpointContext(d.Organization)
	address, err := o.keyring.Open(context, e.URL)
	if err != nil {
		return target{}, "", fmt.Errorf("open endpoint: %w", err)
	}
	return target{string(address), signersAt(e.signingKeys, e.Former, o.currentTime()), context, keyIDFor(e.Public)}, "", nil
}
