// Package slacklink links users of Slack to members, so that a member can vote by a button of a message in Slack. It hides how
// links are stored and offered, and how their validity depends on the membership.
//
// Invariants:
//
//   - A link belongs to one organization. It is valid until it is removed, the membership ends, or the account is taken over.
//     While the membership is suspended, it is inactive.
//   - A user of Slack is linked to at most one member of an organization, and a member to at most MaxLinks users of Slack.
//   - Only who controls the user of Slack gets the offer of a link. Because an offer can be sent to a member who did not ask
//     for it, a member accepts one only in a window: the same session opened it before the offer was made. A window is open
//     for ten minutes, and ends with the link that is made in it. So an offer is valid for ten minutes and once.
//   - A link is made and removed by an event of the log in one append with its record. The member gets a mail about a new one.
package slacklink

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// MaxLinks is the number of users of Slack that a member may be linked to.
const MaxLinks = 3

// windowLife is how long a window is open.
const windowLife = 10 * time.Minute

// Records of the organization's partition.
const (
	kindLink   storage.Kind = "slack_link"   // one for each user of Slack, by team, "/" and user
	kindWindow storage.Kind = "slack_window" // the last window of a member, by account
)

type linkRecord struct {
	ID         string     `json:"id"`
	Account    account.ID `json:"account_id"`
	Membership string     `json:"membership"`
	Name       string     `json:"name,omitzero"`
	LinkedAt   id.Instant `json:"linked_at"`
}

type windowRecord struct {
	Session  string     `json:"session"` // its public ID
	OpenedAt id.Instant `json:"opened_at"`
}

// isOpen reports whether a session may accept offers at a time.
func (r *windowRecord) isOpen(session string, now id.Instant) bool {
	age := now - r.OpenedAt
	return r.Session == session && age >= 0 && age < id.Instant(windowLife.Milliseconds())
}

func recordKey(u slack.User) string { return u.Team + "/" + u.ID }

func userOf(key string) slack.User {
	team, user, _ := strings.Cut(key, "/")
	return slack.User{Team: team, ID: user}
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindLink: records.Check[linkRecord], kindWindow: records.Check[windowRecord]}
}

// Link is a link of a member.
type Link struct {
	slack.User
	LinkID   string
	Name     string // that Slack showed for the user when it was linked; a text that the user chose
	LinkedAt id.Instant
}

// Members looks up members and their accounts (package account). Membership returns fault.NotFound for somebody who is not a
// member, and for a suspended member.
type Members interface {
	ByID(ctx context.Context, who account.ID) (account.Account, error)
	Membership(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error)
	TakenOverAt(ctx context.Context, who account.ID) (id.Instant, error)
}

// Mail sends mails to linked members.
type Mail interface {
	// SlackLinkMail returns the changes of the organization's partition that report a new link.
	SlackLinkMail(ctx context.Context, t id.Tenant, who account.Account, made Link) ([]storage.Change, error)
}

// Options configure New. All except Mail are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Members Members
	Keyring *seal.Keyring // seals offers
	Pace    *quota.Quota  // of changes
	Clock   func() time.Time
	Mail    Mail // nil: nothing is mailed
}

// Links manages the links of all organizations. Its methods may be called concurrently.
type Links struct {
	Options
	links   records.Store[linkRecord]
	windows records.Store[windowRecord]
}

// New returns the links in a store.
func New(o Options) *Links {
	return &Links{Options: o, links: records.New[linkRecord](o.Records, kindLink, "Links to Slack can't be read"),
		windows: records.New[windowRecord](o.Records, kindWindow, "Links to Slack can't be read")}
}

func (l *Links) now() id.Instant { return id.InstantOf(l.Clock()) }

// Open opens a window in which a session of a member may accept an offer. It replaces the member's window of before.
func (l *Links) Open(ctx context.Context, t id.Tenant, by *account.Session) error {
	held, err := l.windows.Get(ctx, t, string(by.Account))
	if err != nil {
		return err
	}
	held.Value = windowRecord{Session: by.ID, OpenedAt: l.now()}
	put, err := l.windows.Put(held)
	if err != nil {
		return err
	}
	paced, err := l.Pace.CountStatement(ctx, t)
	if err != nil {
		return err
	}
	return l.Records.Write(ctx, t, append(paced, put))
}

// OpenUntil returns when the window of a session closes, or 0 if it has none.
func (l *Links) OpenUntil(ctx context.Context, t id.Tenant, by *account.Session) (id.Instant, error) {
	held, err := l.windows.Get(ctx, t, string(by.Account))
	if err != nil || !held.Value.isOpen(by.ID, l.now()) {
		return 0, err
	}
	return held.Value.OpenedAt + id.Instant(windowLife.Milliseconds()), nil
}

// CodeClosed is the code of fault.Conflict for an offer that was not made in the session's window.
const CodeClosed = "slack_window_closed"

// checkWindow returns the member's window. It returns fault.Conflict with CodeClosed if it is not the session's, is closed, or
// was opened after an offer was made.
func (l *Links) checkWindow(ctx context.Context, t id.Tenant, by *account.Session, offer Offer) (records.Versioned[windowRecord], error) {
	held, err := l.windows.Get(ctx, t, string(by.Account))
	if err == nil && (!held.Value.isOpen(by.ID, l.now()) || offer.At < held.Value.OpenedAt) {
		err = &fault.Error{Kind: fault.Conflict, Code: CodeClosed,
			Message: "Begin with “Link a Slack user” on your account's page, then press the button in Slack again"}
	}
	return held, err
}

// Offer is the offer of a link to a user of Slack.
type Offer struct {
	slack.User
	Name string     `json:"name"`
	At   id.Instant `json:"at"`
}

func offerContext(o id.Organization) string { return "slack-offer\n" + o.String() }

// NewOffer returns the text of an offer for the link in a message that only the user of Slack sees.
func (l *Links) NewOffer(organization id.Organization, u slack.User, name string) (string, error) {
	text, err := json.Marshal(Offer{u, name, l.now()})
	if err != nil {
		return "", fmt.Errorf("offer link: %w", err)
	}
	sealed, err := l.Keyring.Seal(offerContext(organization), text)
	if err != nil {
		return "", fmt.Errorf("offer link: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// readOffer returns an offer. It returns fault.Invalid if it was not made for the organization.
func (l *Links) readOffer(organization id.Organization, text string) (o Offer, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return o, errOffer(err)
	}
	opened, err := l.Keyring.Open(offerContext(organization), sealed)
	if err == nil {
		err = json.Unmarshal(opened, &o)
	}
	if err != nil {
		return Offer{}, errOffer(err)
	}
	return o, nil
}

// ShowOffer returns an offer that a session may accept. It returns fault.Invalid if it was not made for the organization, and
// fault.Conflict with CodeClosed if it was not made in the session's window.
func (l *Links) ShowOffer(ctx context.Context, t id.Tenant, organization id.Organization, by *account.Session, text string) (Offer, error) {
	offer, err := l.readOffer(organization, text)
	if err == nil {
		_, err = l.checkWindow(ctx, t, by, offer)
	}
	if err != nil {
		return Offer{}, err
	}
	return offer, nil
}

func errOffer(cause error) error {
	return &fault.Error{Kind: fault.Invalid, Code: "slack_offer_wrong", Err: cause,
		Message: "The link from Slack is not complete, or belongs to another organization"}
}

// Accept links the user of Slack of an offer to the member of a session and states it (ledger_slack_linked). The member gets a
// mail. It returns fault.Invalid for an offer that was not made for the organization, and fault.Conflict if it was not made in
// the session's window (CodeClosed), if the user of Slack is linked to another member or if the member has MaxLinks.
func (l *Links) Accept(ctx context.Context, t id.Tenant, by *account.Session, text string) error {
	who := by.Account
	_, err := l.Events.Append(ctx, t, string(who), func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		offer, err := l.readOffer(s.Identity().Organization, text)
		if err != nil {
			return sysevent.Change{}, err
		}
		window, err := l.checkWindow(ctx, t, by, offer)
		if err != nil {
			return sysevent.Change{}, err
		}
		m, err := l.Members.Membership(ctx, t, who)
		if err != nil {
			return sysevent.Change{}, err
		}
		held, changes, err := l.prepare(ctx, t, m, recordKey(offer.User))
		if err != nil {
			return sysevent.Change{}, err
		}
		now := l.now()
		held.Value = linkRecord{ID: id.Rising("slk_", now), Account: who, Membership: m.ID, Name: offer.Name, LinkedAt: now}
		put, err := l.links.Put(held)
		if err != nil {
			return sysevent.Change{}, err
		}
		paced, err := l.Pace.CountStatement(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		mailed, err := l.mail(ctx, t, who, held)
		changes = append(append(append(changes, paced...), mailed...), put, storage.Change{Kind: kindWindow, Key: window.Key, If: window.Version})
		return statement(sysevent.SlackLinked, held, changes...), err
	})
	return err
}

func (l *Links) mail(ctx context.Context, t id.Tenant, who account.ID, r records.Versioned[linkRecord]) ([]storage.Change, error) {
	if l.Mail == nil {
		return nil, nil
	}
	reader, err := l.Members.ByID(ctx, who)
	if err != nil {
		return nil, err
	}
	return l.Mail.SlackLinkMail(ctx, t, reader, r.Value.link(r.Key))
}

// prepare returns the record of a user of Slack, and the removal of links of the member that are no longer valid.
func (l *Links) prepare(ctx context.Context, t id.Tenant, m account.Membership, key string) (
	held records.Versioned[linkRecord], dropped []storage.Change, err error) {
	count := 0
	held.Key = key
	for r, err := range l.links.Scan(ctx, t, records.Range{}, records.All) {
		if err != nil {
			return held, nil, err
		}
		v := &r.Value
		valid, err := false, error(nil)
		if r.Key == key || v.Account == m.Account {
			if valid, err = l.isValid(ctx, t, v); err != nil {
				return held, nil, err
			}
		}
		switch {
		case r.Key == key && valid && v.Account != m.Account:
			return held, nil, &fault.Error{Kind: fault.Conflict, Code: "slack_user_linked",
				Message: "This user of Slack is linked to another member: remove that link first"}
		case r.Key == key:
			held = r
		case valid:
			count++
		case v.Account == m.Account:
			dropped = append(dropped, storage.Change{Kind: kindLink, Key: r.Key, If: r.Version})
		}
	}
	if count >= MaxLinks {
		return held, nil, &fault.Error{Kind: fault.Conflict, Code: "slack_link_limit",
			Message: fmt.Sprintf("You are linked to %d users of Slack, as many as you can be: remove a link first", MaxLinks)}
	}
	return held, dropped, nil
}

// isValid reports whether a link counts now.
func (l *Links) isValid(ctx context.Context, t id.Tenant, r *linkRecord) (bool, error) {
	if r.Account == "" { // there is no record
		return false, nil
	}
	m, err := l.Members.Membership(ctx, t, r.Account)
	if fault.Is(err, fault.NotFound) || err == nil && m.ID != r.Membership {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	takenOver, err := l.Members.TakenOverAt(ctx, r.Account)
	return takenOver == 0 || r.LinkedAt > takenOver, err
}

// Find returns the membership that a user of Slack is linked to. It returns fault.NotFound if there is none.
func (l *Links) Find(ctx context.Context, t id.Tenant, u slack.User) (account.Membership, error) {
	held, err := l.links.Get(ctx, t, recordKey(u))
	if err != nil {
		return account.Membership{}, err
	}
	valid, err := l.isValid(ctx, t, &held.Value)
	if err != nil {
		return account.Membership{}, err
	}
	if !valid {
		return account.Membership{}, errNoLink()
	}
	return l.Members.Membership(ctx, t, held.Value.Account)
}

func errNoLink() error { return fault.New(fault.NotFound, "Not found") }

func (r *linkRecord) link(key string) Link { return Link{userOf(key), r.ID, r.Name, r.LinkedAt} }

// List returns the valid links of a member, in no particular order.
func (l *Links) List(ctx context.Context, t id.Tenant, who account.ID) (found []Link, err error) {
	for r, err := range l.links.Scan(ctx, t, records.Range{}, records.All) {
		if err != nil {
			return nil, err
		}
		if r.Value.Account != who {
			continue
		}
		valid, err := l.isValid(ctx, t, &r.Value)
		if err != nil {
			return nil, err
		}
		if valid {
			found = append(found, r.Value.link(r.Key))
		}
	}
	return found, nil
}

// Remove removes a link of a member and states it (ledger_slack_unlinked). It returns fault.NotFound if the member has no
// such link.
func (l *Links) Remove(ctx context.Context, t id.Tenant, by, who account.ID, u slack.User) error {
	_, err := l.Events.Append(ctx, t, string(by), func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		held, err := l.links.Get(ctx, t, recordKey(u))
		if err != nil {
			return sysevent.Change{}, err
		}
		if held.Value.Account != who || who == "" {
			return sysevent.Change{}, errNoLink()
		}
		return l.unlink(held), nil
	})
	return err
}

// EndMembership returns the change that removes all links of an account and states it, for the append that ends its
// membership.
func (l *Links) EndMembership(ctx context.Context, t id.Tenant, who account.ID) (ended sysevent.Change, err error) {
	for r, err := range l.links.Scan(ctx, t, records.Range{}, records.All) {
		if err != nil {
			return ended, err
		}
		if r.Value.Account != who {
			continue
		}
		one := l.unlink(r)
		ended.Changes = append(ended.Changes, one.Changes...)
		ended.Statements = append(ended.Statements, one.Statements...)
	}
	ended.Changes = append(ended.Changes, storage.Change{Kind: kindWindow, Key: string(who), If: storage.AnyVersion})
	return ended, nil
}

// unlink returns the change that removes a link and states it.
func (l *Links) unlink(r records.Versioned[linkRecord]) sysevent.Change {
	return statement(sysevent.SlackUnlinked, r, storage.Change{Kind: kindLink, Key: r.Key, If: r.Version})
}

// statement states a change of a link. The ID of the link keeps the events of two links of the same users apart.
func statement(kind sysevent.Kind, r records.Versioned[linkRecord], changes ...storage.Change) sysevent.Change {
	u := userOf(r.Key)
	return sysevent.Change{Changes: changes, KeepConfigVersion: true, Statements: []sysevent.Statement{{Kind: kind,
		Payload: map[string]any{"link_id": r.Value.ID, "account_id": r.Value.Account, "slack_team_id": u.Team, "slack_user_id": u.ID}}}}
}
