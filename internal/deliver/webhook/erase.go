package webhook

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Gone reports what was erased.
type Gone interface {
	// EventErased reports whether the envelope of an event of the organization's log is gone.
	EventErased(ctx context.Context, t id.Tenant, at id.Index) (bool, error)
	// ApprovalErased reports whether the payload of an approval is gone.
	ApprovalErased(ctx context.Context, t id.Tenant, approval string) (bool, error)
}

// eraseTries bounds the retries of the erasure of one delivery that changes at the same time.
const eraseTries = 8

// EraseTexts removes the texts of erased envelopes and payloads from the deliveries and dead letters of an
// organization, and returns the number of changed ones. Notices that are being created at the same time are created
// again from the current content. A request in flight is not cancelled.
func (o *Sender) EraseTexts(ctx context.Context, t id.Tenant, gone Gone) (changed int, err error) {
	if err := o.fencePositions(ctx, t); err != nil {
		return 0, err
	}
	// A delivery may become a dead letter in the meantime, and a dead letter a delivery, so there are three passes.
	for _, store := range []records.Store[delivery]{o.deliveries, o.dead, o.deliveries} {
		for d, err := range store.Scan(ctx, t, records.Range{}, records.All) {
			if err != nil {
				return changed, err
			}
			did, err := o.eraseFrom(ctx, store, t, d, gone)
			if err != nil {
				return changed, err
			}
			if did {
				changed++
			}
		}
	}
	return changed, nil
}

// fencePositions causes all notices of events that are being created to be created again.
func (o *Sender) fencePositions(ctx context.Context, t id.Tenant) error {
	if o.follower == nil {
		return nil
	}
	stored, err := o.endpoints.Get(ctx, t, "")
	if err != nil {
		return err
	}
	for i := range stored.Value.Endpoints {
		if err := o.follower.Fence(ctx, t, string(stored.Value.Endpoints[i].ID)); err != nil {
			return errUnreadable("fence position", err)
		}
	}
	return nil
}

// eraseFrom writes one delivery without the erased texts. If it changed in the meantime, it is read again.
func (o *Sender) eraseFrom(
	ctx context.Context, store records.Store[delivery], t id.Tenant, d records.Versioned[delivery], gone Gone,
) (changed bool, err error) {
	for range eraseTries {
		if !d.Exists() {
			return false, nil
		}
		body, err := o.bodyWithout(ctx, t, ID(d.Key), &d.Value, gone)
		if err != nil || body == nil {
			return false, err
		}
		d.Value.Body, d.Value.Approval = body, ""
		change, err := store.Put(d)
		if err != nil {
			return false, err
		}
		change.Forget = true
		err = o.records.Write(ctx, t, []storage.Change{change})
		if !errors.Is(err, storage.ErrStale) {
			return err == nil, err
		}
		if d, err = store.Get(ctx, t, d.Key); err != nil {
			return false, err
		}
	}
	return false, errUnreadable("erase from delivery", storage.ErrStale)
}

// bodyWithout returns the body of a delivery without the erased texts, or nil if the body does not change.
func (o *Sender) bodyWithout(ctx context.Context, t id.Tenant, name ID, d *delivery, gone Gone) (jsontext.Value, error) {
	if at, of := indexOfNotice(name, d); of {
		return bodyOfEvent(ctx, t, at, d, gone)
	}
	if d.Approval != "" {
		if erased, err := gone.ApprovalErased(ctx, t, d.Approval); err != nil || !erased {
			return nil, err
		}
		return o.erasedCard(d.Approval)
	}
	before, approval, after, shows := cutDetail(d.Body)
	if !shows {
		return nil, nil
	}
	if erased, err := gone.ApprovalErased(ctx, t, approval); err != nil || !erased {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"text": before + after})
	return body, err
}

// indexOfNotice returns the log index at the end of the ID of an event's notice (addNotice).
func indexOfNotice(name ID, d *delivery) (at id.Index, of bool) {
	place, of := strings.CutSuffix(string(name), "_"+strings.ReplaceAll(d.Type, ".", "_"))
	switch d.Type {
	case typeStored, typeDenied, typeTightened:
	default:
		return 0, false
	}
	if !of || len(place) < 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(place[len(place)-16:], 16, 63)
	return id.Index(n), err == nil
}

// bodyOfEvent is bodyWithout for a notice of an event. The principal is the only text that it contains of the envelope.
// A notice of a predecessor's event at that index loses the principal too.
func bodyOfEvent(ctx context.Context, t id.Tenant, at id.Index, d *delivery, gone Gone) (jsontext.Value, error) {
	if !bytes.Contains(d.Body, []byte(`"actor_principal":"`)) {
		return nil, nil
	}
	if erased, err := gone.EventErased(ctx, t, at); err != nil || !erased {
		return nil, err
	}
	var body struct {
		Type      string         `json:"type"`
		Timestamp jsontext.Value `json:"timestamp"`
		Data      eventData      `json:"data"`
	}
	if err := json.Unmarshal(d.Body, &body); err != nil {
		return nil, err
	}
	body.Data.Principal = ""
	return json.Marshal(body)
}

// cutDetail removes the detail from a Slack message of an older program about an approval. shows is false for other
// bodies.
// Backquotes in the detail are escaped, so it ends at the first mark after its start.
func cutDetail(body []byte) (before, approval, after string, shows bool) {
	var message struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(body, &message) != nil {
		return "", "", "", false
	}
	before, rest, begins := strings.Cut(message.Text, "\n```")
	_, after, ends := strings.Cut(rest, "```")
	_, link, linked := strings.Cut(after, "/console/approvals/")
	approval, _, closed := strings.Cut(link, "|")
	return before, approval, after, begins && ends && linked && closed
}
