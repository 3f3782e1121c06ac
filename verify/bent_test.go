package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// Changes that a server can make to an honest bundle before sending it.
func TestBentBundles(t *testing.T) {
	l, other := newTestLog(t, 1, 9), newTestLog(t, 2, 9)
	for _, row := range []struct {
		name string
		bend func(b *Bundle)
		want string
	}{
		{"nothing", func(*Bundle) {}, "++++++"},
		{"inclusion at another size", func(b *Bundle) { b.Inclusion = l.bundle(4, 8, b.Disclosure).Inclusion }, "-+++++"},
		{"inclusion with the size of the checkpoint and another path", func(b *Bundle) { b.Inclusion.Hashes = l.bundle(4, 8, b.Disclosure).Inclusion.Hashes }, "-+++++"},
		{"previous inclusion at another size", func(b *Bundle) { b.PreviousInclusion = l.bundle(4, 8, b.Disclosure).PreviousInclusion }, "++-+++"},
		{"checkpoint of another size", func(b *Bundle) { b.Checkpoint = l.bundle(4, 8, b.Disclosure).Checkpoint }, "-+-+++"},
		{"inclusion and checkpoint of another size", func(b *Bundle) {
			o := l.bundle(4, 8, b.Disclosure)
			b.Inclusion, b.Checkpoint = o.Inclusion, o.Checkpoint
		}, "++-+++"},
		{"everything of another size", func(b *Bundle) { *b = *l.bundle(4, 8, b.Disclosure) }, "++++++"},
		{"inclusion names another index", func(b *Bundle) { b.Inclusion.LogIndex = 5 }, "-+++++"},
		{"inclusion of the entry before", func(b *Bundle) { b.Inclusion = *b.PreviousInclusion }, "-+++++"},
		{"inclusion one hash longer", func(b *Bundle) { b.Inclusion.Hashes = append(b.Inclusion.Hashes, id.Hash{}) }, "-+++++"},
		{"inclusion one hash shorter", func(b *Bundle) { b.Inclusion.Hashes = b.Inclusion.Hashes[1:] }, "-+++++"},
		{"inclusion far too long", func(b *Bundle) { b.Inclusion.Hashes = make([]id.Hash, 1<<16) }, "-+++++"},
		{"inclusion without hashes", func(b *Bundle) { b.Inclusion.Hashes = nil }, "-+++++"},
		{"inclusion with another root", func(b *Bundle) { b.Inclusion.RootHash[0] ^= 1 }, "-+++++"},
		{"inclusion from right to left", func(b *Bundle) { slices.Reverse(b.Inclusion.Hashes) }, "-+++++"},
		{"index at the end of the numbers", func(b *Bundle) { b.LogIndex, b.Inclusion.LogIndex = 1<<64-1, 1<<64-1 }, "-+-+++"},
		{"tree size at the end of the numbers", func(b *Bundle) { b.Inclusion.TreeSize = 1<<64 - 1 }, "-+++++"},
		{"index beyond the tree", func(b *Bundle) { b.LogIndex, b.Inclusion.LogIndex = 9, 9 }, "-+-+++"},
		{"index of the first entry", func(b *Bundle) { b.LogIndex = 0 }, "-+-+++"},
		{"index and sequence number of the first entry, none before", func(b *Bundle) {
			b.LogIndex, b.SequenceNum, b.PreviousEntry, b.PreviousInclusion = 0, 1, nil, nil
		}, "-+--++"},
		{"sequence number off by one", func(b *Bundle) { b.SequenceNum++ }, "-++-++"},
		{"event hash of the entry before", func(b *Bundle) { b.EventHash = l.leaves(9)[3] }, "-+++++"},
		{"entry with a space", func(b *Bundle) { b.Entry = strings.Replace(b.Entry, ":", ": ", 1) }, "-+--++"},
		{"entry in upper-case hex", func(b *Bundle) { b.Entry = strings.ToUpper(b.Entry[:60]) + b.Entry[60:] }, "-+--++"},
		{"no previous entry", func(b *Bundle) { b.PreviousEntry = nil }, "++-+++"},
		{"no previous inclusion", func(b *Bundle) { b.PreviousInclusion = nil }, "++-+++"},
		{"previous entry is the one before the one before", func(b *Bundle) { b.PreviousEntry = l.bundle(3, 9, b.Disclosure).PreviousEntry }, "++-+++"},
		{"previous entry and proof are the ones before", func(b *Bundle) {
			o := l.bundle(3, 9, b.Disclosure)
			b.PreviousEntry, b.PreviousInclusion = o.PreviousEntry, o.PreviousInclusion
		}, "++-+++"},
		{"previous entry of another log", func(b *Bundle) {
			o := other.bundle(4, 9, b.Disclosure)
			b.PreviousEntry, b.PreviousInclusion = o.PreviousEntry, o.PreviousInclusion
		}, "++-+++"},
		{"previous entry is the entry", func(b *Bundle) { b.PreviousEntry, b.PreviousInclusion = &b.Entry, &b.Inclusion }, "++-+++"},
		{"previous entry not the template", func(b *Bundle) { text := *b.PreviousEntry + " "; b.PreviousEntry = &text }, "++-+++"},
		{"previous inclusion names another index", func(b *Bundle) { b.PreviousInclusion.LogIndex = 4 }, "++-+++"},
		{"previous inclusion one hash longer", func(b *Bundle) { b.PreviousInclusion.Hashes = append(b.PreviousInclusion.Hashes, id.Hash{}) }, "++-+++"},
		{"record of another event", func(b *Bundle) { b.Record = l.bundle(2, 9, b.Disclosure).Record }, "+++-+-"},
		{"record of another organization", func(b *Bundle) { b.Record = other.bundle(4, 9, b.Disclosure).Record }, "+++-+-"},
		{"record with a space", func(b *Bundle) { text := strings.Replace(*b.Record, ":", ": ", 1); b.Record = &text }, "+++-00"},
		{"record empty", func(b *Bundle) { text := ""; b.Record = &text }, "+++-00"},
		{"record missing", func(b *Bundle) { b.Record = nil }, "+++-00"},
		{"record missing, disclosure commitment", func(b *Bundle) { b.Record, b.Disclosure = nil, id.DiscloseCommitment }, "+++000"},
		{"envelope of another event", func(b *Bundle) { b.Envelope = l.bundle(2, 9, b.Disclosure).Envelope }, "+++++-"},
		{"envelope of another organization", func(b *Bundle) { b.Envelope = other.bundle(4, 9, b.Disclosure).Envelope }, "+++++-"},
		{"envelope with a space", func(b *Bundle) { text := *b.Envelope + " "; b.Envelope = &text }, "+++++-"},
		{"envelope in another order", func(b *Bundle) {
			text := `{"trace_id":"trc_1",` + strings.Replace((*b.Envelope)[1:], `,"trace_id":"trc_1"`, "", 1)
			b.Envelope = &text
		}, "+++++-"},
		{"envelope without signature", func(b *Bundle) {
			text := (*b.Envelope)[:strings.Index(*b.Envelope, `,"sig_alg"`)] + `,"trace_id":"trc_1"}`
			b.Envelope = &text
		}, "+++++-"},
		{"envelope with a member twice", func(b *Bundle) {
			text := strings.Replace(*b.Envelope, `"salt"`, `"salt":"","salt"`, 1)
			b.Envelope = &text
		}, "+++++-"},
		{"envelope empty", func(b *Bundle) { text := ""; b.Envelope = &text }, "+++++-"},
		{"envelope missing", func(b *Bundle) { b.Envelope = nil }, "+++++-"},
		{"envelope erased", func(b *Bundle) { b.Envelope, b.ErasedAt = nil, new(id.Instant) }, "+++++0"},
		{"envelope missing, disclosure record", func(b *Bundle) { b.Envelope, b.Disclosure = nil, id.DiscloseRecord }, "+++++0"},
		{"record and envelope missing", func(b *Bundle) { b.Record, b.Envelope = nil, nil }, "+++-0-"},
		{"envelope alone", func(b *Bundle) { b.Record, b.Disclosure = nil, id.DiscloseCommitment }, "+++000"},
		{"event id of another event", func(b *Bundle) { b.EventID = "evt_5" }, "+++-++"},
		{"event id in upper case", func(b *Bundle) { b.EventID = "EVT_4" }, "+++-++"},
		{"organization of another", func(b *Bundle) { b.OrganizationID = other.org }, "+++-++"},
		{"origin of another", func(b *Bundle) { b.Origin = other.origin }, "+-+-++"},
		{"origin and key of another", func(b *Bundle) { o := other.bundle(4, 9, b.Disclosure); b.Origin, b.LogKey = o.Origin, o.LogKey }, "+-+-++"},
	} {
		b := l.bundle(4, 9, id.DiscloseFull)
		row.bend(b)
		r := Check(b, l.options())
		if got := verdicts(r); got != row.want || r.OK != !strings.Contains(row.want, "-") || len(r.Errors) != strings.Count(row.want, "-") {
			t.Errorf("%s: got %s, %v, %v, want %s", row.name, got, r.OK, r.Errors, row.want)
		}
	}
}
