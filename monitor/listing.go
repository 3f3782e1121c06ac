package monitor

import (
	"context"
	"fmt"
	"maps"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// listings reads the events of a directory in order and checks them against the entries.
type listings struct {
	service  *client.Client
	register *register
	page     client.DirectoryPage
}

// visitEntries reads the events of entries that the directory's monitor has verified.
func (l *listings) visitEntries(ctx context.Context, begin id.Index, entries []event.Entry) error {
	for i, entry := range entries {
		at := begin + id.Index(i)
		if at < l.register.ReadTo {
			continue
		}
		shown, err := l.shownEvent(ctx, at)
		if err != nil {
			return err
		}
		if shown == nil {
			l.register.Hidden++
			continue
		}
		if err := l.registerEvent(entry, *shown); err != nil {
			return err
		}
	}
	l.register.ReadTo = max(l.register.ReadTo, begin+id.Index(len(entries)))
	return nil
}

// shownEvent returns the shown event of the entry at an index, or nil if the content is hidden.
func (l *listings) shownEvent(ctx context.Context, index id.Index) (*client.DirectoryEvent, error) {
	if index < l.page.From || index >= l.page.Next {
		p, err := l.service.DirectoryPage(ctx, index)
		if err != nil {
			return nil, err
		}
		if p.From != index || p.Next <= index {
			return nil, fmt.Errorf("fetch directory: it ends at %d, before its checkpoint", p.Next)
		}
		l.page = p
	}
	for i := range l.page.Events {
		if l.page.Events[i].LogIndex == index {
			return &l.page.Events[i], nil
		}
	}
	return nil, nil
}

// registerEvent checks one event against its entry and registers its listed trees.
func (l *listings) registerEvent(entry event.Entry, shown client.DirectoryEvent) error {
	list, err := readListing(entry, shown)
	if err != nil {
		return l.newFinding(Tampering, shown, fmt.Sprintf("event %d of the directory: %v", shown.LogIndex, err), nil)
	}
	for _, listed := range list.Checkpoints {
		if kind, before := l.register.addListing(listed, shown.LogIndex); kind != "" {
			what := fmt.Sprintf("event %d of the directory does not list a tree of %s "+
				"after the one that it listed before",
				shown.LogIndex, listed.Origin)
			return l.newFinding(kind, shown, what,
				[]Evidence{before.newestHead().asEvidence(),
					{From: "the directory", TreeSize: listed.Size, RootHash: listed.Root}})
		}
	}
	return nil
}

// readListing parses an event of the directory and checks it against its entry.
func readListing(entry event.Entry, shown client.DirectoryEvent) (verify.Listing, error) {
	if event.RecordHash([]byte(shown.Record)) != entry.Record {
		return verify.Listing{}, fmt.Errorf("record and what the entry commits to: %w", verify.ErrMismatch)
	}
	r, err := event.ParseRecord([]byte(shown.Record))
	if err != nil {
		return verify.Listing{}, err
	}
	e, err := event.Parse([]byte(shown.Envelope), event.Options{MaxBytes: len(shown.Envelope), Server: true})
	if err != nil {
		return verify.Listing{}, err
	}
	if e.Digest != r.EventDigest || r.Signer != event.SignerSystem {
		return verify.Listing{}, fmt.Errorf("envelope and record: %w", verify.ErrMismatch)
	}
	return verify.ParseListing(e)
}

// newFinding returns a finding about the directory itself. heads are the two conflicting heads, if
// any.
func (l *listings) newFinding(kind Kind, shown client.DirectoryEvent, what string, heads []Evidence) error {
	f := &Finding{Kind: kind, What: what, Content: eventContent(shown)}
	if len(heads) == 2 {
		f.Known, f.Shown = heads[0], heads[1]
	}
	return f
}

func eventContent(e client.DirectoryEvent) map[string][]byte {
	return map[string][]byte{"record.json": []byte(e.Record), "envelope.json": []byte(e.Envelope)}
}

// attachListing returns a function that fetches the directory's event for a listed tree again, as
// evidence of a finding about that tree.
func attachListing(service *client.Client, l registeredLog) func(context.Context, Evidence) (map[string][]byte, error) {
	return func(ctx context.Context, known Evidence) (map[string][]byte, error) {
		index, files := l.findListing(known), map[string][]byte{}
		p, err := service.DirectoryPage(ctx, index)
		for _, e := range p.Events {
			if e.LogIndex == index {
				maps.Copy(files, eventContent(e))
			}
		}
		return files, err
	}
}
