package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
)

// Bounds of deliveries under way: in all, of one organization, to one receiver, and of
// one organization to one receiver.
const (
	maxFlying             = 256
	maxFlyingOrganization = 16
	maxFlyingReceiver     = 64
	maxFlyingLane         = 8
)

// reserve is the number of free places of a wider bound that each taken place needs. So the last
// places are for organizations with few: with 12 organizations that have all of theirs, a thirteenth
// still finds room.
const reserve = 8

// underway is whose a delivery is that is under way.
type underway struct {
	tenant   id.Tenant
	receiver string
}

// receiverAddress returns a short name of the host and port of an address, "" of an address
// that has none. It is the lane of a delivery.
func receiverAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.ToLower(u.Host)))
	return hex.EncodeToString(sum[:8])
}

// formatEntryName is the name of a delivery's due entry: it holds the lane, so that none has
// to be read to be put in its lane.
func formatEntryName(name ID, d *delivery) string { return string(name) + "/" + d.laneName() }

// deliveryName returns the delivery that an entry is of.
func deliveryName(e schedule.Entry) ID {
	name, _, _ := strings.Cut(e.Name, "/")
	return ID(name)
}

// laneOfReceiver returns the receiver that an entry is for. Entries that were copied, or written
// by older programs, do not name it.
func (o *Sender) laneOfReceiver(ctx context.Context, e schedule.Entry) string {
	if _, lane, named := strings.Cut(e.Name, "/"); named {
		return lane
	}
	d, err := o.deliveries.Get(ctx, e.Tenant, e.Name)
	if err != nil || !d.Exists() {
		return ""
	}
	return d.Value.laneName()
}

// reserveSlot takes a place for a delivery, or returns who has no room: schedule.Keep for a
// delivery that is under way.
func (o *Sender) reserveSlot(e schedule.Entry) (outcome schedule.Outcome, departs bool) {
	name, f := deliveryName(e), underway{e.Tenant, e.Lane}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, out := o.underway[name]; out {
		return schedule.Keep(), false
	}
	if outcome, full := o.slotsFull(f); full {
		o.left = true
		return outcome, false
	}
	o.underway[name] = f
	return schedule.Keep(), true
}

// slotsFull says whether, and for whom, one more flight is too much.
func (o *Sender) slotsFull(f underway) (schedule.Outcome, bool) {
	own, receiver, lane := 0, 0, 0
	for _, other := range o.underway {
		if other.tenant == f.tenant {
			own++
		}
		if other.receiver == f.receiver {
			receiver++
		}
		if other == f {
			lane++
		}
	}
	free := maxFlying - len(o.underway)
	switch {
	case free == 0:
		return schedule.AllFull(), true
	case own >= maxFlyingOrganization, own*reserve >= free:
		return schedule.OrganizationFull(), true
	case lane >= maxFlyingLane, lane >= maxFlyingOrganization-own, lane*reserve >= maxFlyingReceiver-receiver:
		return schedule.LaneFull(), true
	}
	return schedule.Keep(), false
}

func (o *Sender) releaseSlot(name ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.underway, name)
	if !o.left {
		return
	}
	o.left = false
	select {
	case o.room <- struct{}{}:
	default:
	}
}
