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

// Bounds of mails that a caller can cause to an address that did not ask for them. They hold over the whole service,
// on all of its nodes, and nothing resets them.
const (
	strangerPause = 10 * time.Minute // between two mails to an address
	strangerDaily = 5                // mails to an address in 24 hours
	// DefaultDailyMails is how many such mails an organization causes in a day of UTC unless Options say otherwise.
	DefaultDailyMails = 100
)

const (
	// kindStranger has one record in the service's own partition for each address that was mailed recently, by its purpose
	// and the SHA-256 of the address.
	kindStranger storage.Kind = "mail_stranger"
	// kindDaily has one record there for each organization that caused such mails, by its number.
	kindDaily storage.Kind = "mail_daily"
)

// Stranger is a mail to an address that may belong to nobody who asked for it.
type Stranger struct {
	Address string
	// Purpose keeps mails of one purpose from using up the bound of another one. Invitations and confirmations of
	// addresses have "".
	Purpose string
	// Cause names the request. Counting the same cause again counts nothing, so that a repeated write is counted once.
	Cause string
	// Organization is the one that causes the mail; id.Service for none.
	Organization id.Tenant
	// Unlimited allows any number in a day. The pause holds.
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

// countTries bounds how often a count is tried again because another node or request counted at the same time.
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

// strangerKey returns the key of an address. Addresses that differ only in case or in a tag after "+" reach one person.
func strangerKey(s Stranger) string {
	local, domain, _ := strings.Cut(strings.ToLower(s.Address), "@")
	local, _, _ = strings.Cut(local, "+")
	sum := sha256.Sum256([]byte(local + "@" + domain))
	return s.Purpose + "/" + hex.EncodeToString(sum[:])
}

// newerThan returns the mails of the 24 hours before now. A time after now counts, unless it is so late that only a
// corrected clock can have written it.
func newerThan(all []sentMail, now time.Time) (left []sentMail) {
	oldest, latest := id.InstantOf(now.Add(-24*time.Hour)), id.InstantOf(now.Add(time.Hour))
	for _, sent := range all {
		if sent.At > oldest && sent.At < latest {
			left = append(left, sent)
		}
	}
	return left
}

// wait returns how long the next mail to the address has to wait, 0 if it can be sent now.
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

// oldStrangers returns changes that remove a few records of addresses that were not mailed within a day, so that the
// number of records does not grow.
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
