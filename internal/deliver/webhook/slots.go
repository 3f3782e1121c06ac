package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/internal/deliver/schedule"
)

// Bounds of deliveries in flight: in total, of one organization, to one receiver, and of one organization to one
// receiver.
const (
	maxInFlight             = 256
	maxInFlightOrganization = 16
	maxInFlightReceiver     = 64
	maxInFlightLane         = 8
)

// reserve is the number of free slots of a wider bound that each used slot requires. So the last slots are for
// organizations that use few: if 12 organizations use all of theirs, a thirteenth still gets some.
const reserve = 8

// checkSlots returns which entries must wait before one more delivery may start. Lanes are receivers.
func checkSlots(inFlight schedule.Jobs, j schedule.Job, lane string) schedule.Outcome {
	own, receiver, both := 0, 0, 0
	for other, otherLane := range inFlight {
		if other.Tenant == j.Tenant {
			own++
		}
		if otherLane == lane {
			receiver++
		}
		if other.Tenant == j.Tenant && otherLane == lane {
			both++
		}
	}
	free := maxInFlight - len(inFlight)
	switch {
	case free == 0:
		return schedule.AllFull()
	case own >= maxInFlightOrganization, own*reserve >= free:
		return schedule.OrganizationFull()
	case both >= maxInFlightLane, both >= maxInFlightOrganization-own, both*reserve >= maxInFlightReceiver-receiver:
		return schedule.LaneFull()
	}
	return schedule.Keep()
}

// receiverAddress returns a short name of the host and port of an address, or "" if it has no host. It is the lane of a
// delivery.
func receiverAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.ToLower(u.Host)))
	return hex.EncodeToString(sum[:8])
}

// formatEntryName returns the name of a delivery's due entry. It contains the lane, so that the delivery need not be read
// to find its lane.
func formatEntryName(name ID, d *delivery) string { return string(name) + "/" + d.laneName() }

// laneOfReceiver returns the lane of an entry. The names of entries that were copied, or written by older programs, do
// not contain it.
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
