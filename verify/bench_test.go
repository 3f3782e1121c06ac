package verify

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

func BenchmarkNewBundle(b *testing.B) {
	l := newTestLog(b, 1, 20)
	host := l.bundle(18, 20, id.DiscloseRecord)
	e := l.events[18]
	p := Parts{
		Organization: l.org, Slug: l.slug, Event: e.record.EventID, Index: 18, Entry: e.entry, Proof: host.Inclusion.Hashes,
		Previous: l.events[17].entry, PreviousProof: host.PreviousInclusion.Hashes, Checkpoint: l.checkpoint(20),
		Note: []byte(host.Checkpoint), Key: l.verifier(l.key), Disclosure: id.DiscloseRecord, Record: e.recordText,
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewBundle(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	l := newTestLog(b, 1, 20)
	for _, d := range disclosures() {
		bundle, options := l.bundle(18, 20, d), l.options()
		b.Run(d.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := Check(bundle, options); !r.OK {
					b.Fatal(r.Errors)
				}
			}
		})
	}
}

func BenchmarkParseBundle(b *testing.B) {
	text, err := json.Marshal(newTestLog(b, 1, 20).bundle(18, 20, id.DiscloseFull))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBundle(text); err != nil {
			b.Fatal(err)
		}
	}
}
