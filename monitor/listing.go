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

// listings reads what the entries of a directory list, in order, beside the entries
// themselves, which say whether it is true.
type listings struct {
	service  *client.Client
	register *register
	page     client.DirectoryPage
}

// visitEntries takes entries that the directory's monitor has found in its log.
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

// shownEvent returns what is shown of the entry at an index, nil when that is nothing.
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

// registerEvent checks one event against its entry and registers what it lists.
func (l *listings) registerEvent(entry event.Entry, shown client.DirectoryEvent) error {
	list, err := readListing(entry, shown)
	if err != nil {
		return l.newFinding(Tampering, shown, fmt.Sprintf("event %d of the directory: %v", shown.LogIndex, err), nil)
	}
	for _, listed := range list.Checkpoints {
		if kind, before := l.register.addListing(listed, shown.LogIndex); kind != "" {
			what := fmt.Sprintf("event %d of the directory does not list a tree of %s after the one that it listed before", shown.LogIndex, listed.Origin)
			return l.newFinding(kind, shown, what, []Evidence{before.newestHead().asEvidence(), {From: "the directory", TreeSize: listed.Size, RootHash: listed.Root}})
		}
	}
	return nil
}

// readListing reads an event of the directory that an entry commits to.
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

// newFinding is of the directory itself: heads are the two that don't fit, if any.
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

// attachListing returns what fetches the directory's event that lists a tree of a log
// again, to be kept beside a finding that rests on it.
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
