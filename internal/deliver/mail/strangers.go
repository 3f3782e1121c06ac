package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of mails that a caller can send to an address that did not ask for them. They apply to the whole service, over
// all nodes, and cannot be reset.
const (
	strangerPause = 10 * time.Minute // between two mails to an address
	strangerDaily = 5                // mails to an address in 24 hours
	// DefaultDailyMails is the number of such mails that an organization may cause in a day (UTC), unless Options.DailyMails is set.
	DefaultDailyMails = 100
)

const (
	// kindStranger has one record in the service's own partition for each address that was mailed recently, by its purpose
	// and the SHA-256 of the address.
	kindStranger storage.Kind = "mail_stranger"
	// kindDaily has one record in the service's own partition for each organization that caused such mails, by its
	// number.
	kindDaily storage.Kind = "mail_daily"
)

// Stranger is a mail to an address whose owner may not have asked for it.
type Stranger struct {
	Address string
	// Purpose separates bounds: mails of one purpose do not count toward the bound of another one. Invitations and
	// confirmations of addresses have "".
	Purpose string
	// Cause identifies the request. A cause is counted once, even if its write is repeated.
	Cause string
	// Organization is the organization that causes the mail, or id.Service.
	Organization id.Tenant
	// Unlimited means that the daily bound does not apply. The pause between two mails does.
	Unlimited bool
}

type strangerRecord struct {
	Sent []sentMail `json:"sent"` // oldest first, of the last 24 hours
}

type sentMail struct {
	At    id.Instant `json:"at"`
	Cause string     `json:"cause"`
}

type dailyRecord struct {
	Day   string `json:"day"` // of UTC
	Count int    `json:"count"`
}

// countTries bounds the retries of a count if other nodes or requests count at the same time.
const countTries = 16

// CountStranger counts a mail to a stranger before it is written. It returns fault.RateLimited if the address or the
// organization has had too many.
func (o *Outbox) CountStranger(ctx context.Context, s Stranger) error {
	for range countTries {
		err := o.tryCountStranger(ctx, s)
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
	return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: time.Second,
		Message: "Too many mails at the same time: try again"}
}

func (o *Outbox) tryCountStranger(ctx context.Context, s Stranger) error {
	now := o.Clock()
	strangers := records.New[strangerRecord](o.Records, kindStranger, unreadableMessage)
	v, err := strangers.Get(ctx, id.Service, strangerKey(s))
	if err != nil {
		return err
	}
	v.Value.Sent = newerThan(v.Value.Sent, now)
	for _, sent := range v.Value.Sent {
		if sent.Cause == s.Cause && s.Cause != "" {
			return nil
		}
	}
	if wait := v.Value.wait(id.InstantOf(now), s.Unlimited); wait > 0 {
		return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: wait,
			Message: "The address was mailed recently: the service mails an address that is no member at most once in " +
				"10 minutes and 5 times a day"}
	}
	daily, err := o.countDaily(ctx, s.Organization, now)
	if err != nil {
		return err
	}
	sent := append(v.Value.Sent, sentMail{id.InstantOf(now), s.Cause})
	v.Value.Sent = sent[max(0, len(sent)-strangerDaily):]
	put, err := strangers.Put(v)
	if err != nil {
		return err
	}
	old, err := o.oldStrangers(ctx, v.Key, now)
	if err != nil {
		return err
	}
	err = o.Records.Write(ctx, id.Service, append(append(daily, put), old...))
	if err != nil && !errors.Is(err, storage.ErrStale) {
		return records.Unreadable(unreadableMessage, "count mail", err)
	}
	return err
}

// strangerKey returns the key of an address. Addresses that differ only in case or in a tag after "+" have the same
// key, because they belong to one person.
func strangerKey(s Stranger) string {
	local, domain, _ := strings.Cut(strings.ToLower(s.Address), "@")
	local, _, _ = strings.Cut(local, "+")
	sum := sha256.Sum256([]byte(local + "@" + domain))
	return s.Purpose + "/" + hex.EncodeToString(sum[:])
}

// newerThan returns the mails of the 24 hours before now. A later time counts too, unless it is so late that only a
// clock that was corrected since can have written it.
func newerThan(all []sentMail, now time.Time) (recent []sentMail) {
	oldest, latest := id.InstantOf(now.Add(-24*time.Hour)), id.InstantOf(now.Add(time.Hour))
	for _, sent := range all {
		if sent.At > oldest && sent.At < latest {
			recent = append(recent, sent)
		}
	}
	return recent
}

// wait returns the time until the next mail to the address is allowed, or 0 if it is allowed now.
func (r strangerRecord) wait(now id.Instant, unlimited bool) time.Duration {
	if len(r.Sent) == 0 {
		return 0
	}
	free := r.Sent[len(r.Sent)-1].At + id.Instant(strangerPause.Milliseconds())
	if len(r.Sent) >= strangerDaily && !unlimited {
		free = max(free, r.Sent[len(r.Sent)-strangerDaily].At+dayLong)
	}
	return time.Duration(max(0, free-now)) * time.Millisecond
}

// countDaily returns the change that counts a mail of an organization.
func (o *Outbox) countDaily(ctx context.Context, t id.Tenant, now time.Time) ([]storage.Change, error) {
	if t == id.Service {
		return nil, nil
	}
	counts := records.New[dailyRecord](o.Records, kindDaily, unreadableMessage)
	v, err := counts.Get(ctx, id.Service, fmt.Sprintf("%016x", uint64(t)))
	if err != nil {
		return nil, err
	}
	most := cmp.Or(o.DailyMails, DefaultDailyMails)
	if today := now.UTC().Format(time.DateOnly); v.Value.Day != today {
		v.Value = dailyRecord{Day: today}
	}
	if v.Value.Count >= most {
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return nil, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: midnight.Sub(now),
			Message: fmt.Sprintf("The organization has sent %s to addresses that are no members today, as many as it "+
				"may send in a day", textcheck.Count(most, "mail"))}
	}
	v.Value.Count++
	put, err := counts.Put(v)
	return []storage.Change{put}, err
}

// oldStrangers returns changes that delete a few records of addresses without a mail in the last day, so that the number
// of records stays bounded.
func (o *Outbox) oldStrangers(ctx context.Context, after string, now time.Time) (changes []storage.Change, err error) {
	const looked = 8
	strangers := records.New[strangerRecord](o.Records, kindStranger, unreadableMessage)
	found, err := strangers.List(ctx, id.Service, records.After(after), looked)
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		if len(newerThan(v.Value.Sent, now)) == 0 {
			changes = append(changes, storage.Change{Kind: kindStranger, Key: v.Key, If: v.Version})
		}
	}
	return changes, nil
}
