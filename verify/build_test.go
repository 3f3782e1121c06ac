package verify

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Only the disclosure decides what a bundle shows, whatever data is available.
func TestNewBundleDiscloses(t *testing.T) {
	l := newTestLog(t, 1, 0)
	l.add(forgery{})
	l.add(forgery{record: func(r *event.Record) { r.Signer = event.SignerSystem }})
	erased := testStart
	for _, row := range []struct {
		name             string
		index            int
		disclosure       id.Disclosure
		erased           bool
		want             id.Disclosure
		record, envelope bool
		erasedAt         bool
	}{
		{"commitment", 0, id.DiscloseCommitment, false, id.DiscloseCommitment, false, false, false},
		{"record", 0, id.DiscloseRecord, false, id.DiscloseRecord, true, false, false},
		{"full", 0, id.DiscloseFull, false, id.DiscloseFull, true, true, false},
		{"commitment, erased", 0, id.DiscloseCommitment, true, id.DiscloseCommitment, false, false, false},
		{"record, erased", 0, id.DiscloseRecord, true, id.DiscloseRecord, true, false, true},
		{"full, erased", 0, id.DiscloseFull, true, id.DiscloseFull, true, false, true},
		{"full, system", 1, id.DiscloseFull, false, id.DiscloseRecord, true, false, false},
		{"no disclosure at all", 0, 0, false, 0, false, false, false},
	} {
		e := l.events[row.index]
		p := Parts{
			Event: e.record.EventID, Index: id.Index(row.index), Entry: e.entry, Checkpoint: l.checkpoint(2), Key: l.verifier(l.key),
			Disclosure: row.disclosure, Record: e.recordText, Envelope: e.envelope,
		}
		if row.erased {
			p.Envelope, p.ErasedAt = nil, &erased
		}
		b, err := NewBundle(p)
		if err != nil {
			t.Fatal(err)
		}
		if b.Disclosure != row.want || (b.Record != nil) != row.record || (b.Envelope != nil) != row.envelope || (b.ErasedAt != nil) != row.erasedAt {
			t.Errorf("%s: got %v, record %v, envelope %v, erased %v", row.name, b.Disclosure, b.Record != nil, b.Envelope != nil, b.ErasedAt != nil)
		}
	}
}

func TestNewBundleRejectsUnreadableRecord(t *testing.T) {
	p := Parts{Disclosure: id.DiscloseFull, Record: []byte("{}"), Envelope: []byte("{}")}
	if b, err := NewBundle(p); err == nil || !strings.HasPrefix(err.Error(), "build bundle: ") {
		t.Errorf("got %v, %v", b, err)
	}
}

// The service's own events are shown as records at most, except for kinds whose payload
// readers check.
func TestDisclosed(t *testing.T) {
	for _, setting := range []id.Disclosure{id.DiscloseCommitment, id.DiscloseRecord, id.DiscloseFull} {
		for signer, want := range map[event.Signer]id.Disclosure{
			event.SignerAgent: setting, event.SignerBridge: setting, event.SignerSystem: min(setting, id.DiscloseRecord),
		} {
			if got := Disclosed(setting, signer, "ledger_settings_changed"); got != want {
				t.Errorf("%v of %s: got %v, want %v", setting, signer, got, want)
			}
		}
		for _, kind := range []string{DirectoryKind, SuccessorKind, LogKeyKind} {
			if got := Disclosed(setting, event.SignerSystem, kind); got != id.DiscloseFull {
				t.Errorf("%v of %s: got %v", setting, kind, got)
			}
		}
		if got := Disclosed(setting, event.SignerAgent, DirectoryKind); got != setting {
			t.Errorf("%v of an agent that claims to be a directory: got %v", setting, got)
		}
	}
}
