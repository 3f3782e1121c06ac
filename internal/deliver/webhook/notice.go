package webhook

import (
	"context"
	"fmt"

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
		d.Body, err = o.slackBody(m, len(to.SlackSecret) > 0)
		if m.Card != nil {
			d.Approval = m.Card.Approval
		}
	}
	return name, d, err
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
