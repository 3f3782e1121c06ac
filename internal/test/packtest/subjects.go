package packtest

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/pack"
)

// newSubjectLog returns a log of nine events, some of them on behalf of alice. Event 8 erases the envelope of event 6.
func newSubjectLog(t testing.TB) *Log {
	t.Helper()
	l := NewLog(t)
	party := func(issuer, subject string) map[string]any {
		return map[string]any{"issuer": "https://" + issuer + ".example", "subject": subject}
	}
	act := func(of any) {
		w := EventSpec{Tool: "acme.orders.read", Judged: true}
		if of != nil {
			w.Members = map[string]any{"on_behalf_of": of}
		}
		l.Append(w)
	}
	delegated := party("a", "alice")
	delegated["actors"] = []any{party("a", "bob")}
	act(party("a", "alice"))
	act(party("b", "alice"))
	act(party("a", "bob"))
	act(nil)
	act("alice")
	act(delegated)
	act(party("a", "alice"))
	act(map[string]any{"issuer": []any{"https://a.example"}, "subject": "alice"}) // stored before the member was defined
	l.Append(EventSpec{Kind: "ledger_envelope_erased", Payload: erasedRanges(6, 7)})
	return l
}

// subjectSelection selects the events on behalf of a subject. If issuer is "", it may be of any.
func subjectSelection(subject, issuer string, envelopes bool) Selection {
	return Selection{Begin: 0, End: 9, Size: 9, Acts: true, Request: pack.Request{Envelopes: envelopes, Subject: subject, Issuer: issuer}}
}

// SubjectSamples returns valid packs of the events on behalf of a subject.
func SubjectSamples(t testing.TB) (samples []Sample) {
	t.Helper()
	l := newSubjectLog(t)
	for _, s := range []struct {
		name, subject, issuer string
		envelopes             bool
		shown                 uint64
	}{
		{"of a subject", "alice", "", true, 5},
		{"of a subject of an issuer", "alice", "https://a.example", true, 3},
		{"of a subject, without envelopes", "alice", "", false, 5},
		{"of a subject that is only an actor of others", "bob", "https://a.example", true, 1},
		{"of nobody", "carol", "", true, 0},
	} {
		a := subjectSelection(s.subject, s.issuer, s.envelopes)
		erased := uint64(0)
		if s.subject == "alice" { // the operator remembered whose event 6 was
			a.Erased, a.Erasing, erased = []id.Index{6}, []id.Index{8}, 1
		}
		samples = append(samples, Sample{Name: "subjects: " + s.name, Parts: l.Pack(a), Begin: 0, End: 9, Shown: s.shown,
			Withheld: 9 - s.shown, Erased: erased})
	}
	return samples
}

// WrongSubjects returns invalid packs whose request names a subject.
func WrongSubjects(t testing.TB) (all []Wrong) {
	t.Helper()
	l := newSubjectLog(t)
	text := func(old, other string) func(*Parts) {
		return func(p *Parts) {
			m, err := p.sealed()
			if err != nil || !strings.Contains(m, old) {
				t.Fatalf("nothing to replace in the manifest: %v", err)
			}
			p.Text = strings.Replace(m, old, other, 1)
		}
	}
	for _, c := range []struct {
		name string
		bend func(*Parts)
	}{
		{"events of another subject", func(p *Parts) { p.Manifest.Request.Subject = "bob" }},
		{"events of a subject in upper case", func(p *Parts) { p.Manifest.Request.Subject = "Alice" }},
		{"events of another issuer", func(p *Parts) { p.Manifest.Request.Issuer = "https://c.example" }},
		{"events of one of two issuers", func(p *Parts) { p.Manifest.Request.Issuer = "https://a.example" }},
		{"events that are not shown, without the filter", func(p *Parts) { p.Manifest.Request.Subject = "" }},
		{"an issuer without a subject", text(`"on_behalf_of":"alice"`, `"issuer":"https://a.example"`)},
		{"an empty subject", text(`"on_behalf_of":"alice"`, `"on_behalf_of":""`)},
		{"a subject that is null", text(`"on_behalf_of":"alice"`, `"on_behalf_of":null`)},
		{"a subject that is a list", text(`"on_behalf_of":"alice"`, `"on_behalf_of":["alice"]`)},
		{"an empty issuer", text(`"from":null,`, `"from":null,"issuer":"",`)},
		{"an issuer that is a number", text(`"from":null,`, `"from":null,"issuer":1,`)},
	} {
		a := subjectSelection("alice", "", true)
		a.Erased, a.Erasing = []id.Index{6}, []id.Index{8}
		p := l.Pack(a)
		c.bend(p)
		all = append(all, Wrong{Name: "subjects: " + c.name, Bytes: Compressed(t, p)})
	}
	everything := Selection{Begin: 0, End: 9, Size: 9, Acts: true, Request: pack.Request{Envelopes: true}, Erased: []id.Index{6}, Erasing: []id.Index{8}}
	p := l.Pack(everything)
	p.Manifest.Request.Subject = "alice"
	return append(all, Wrong{Name: "subjects: events without a subject", Bytes: Compressed(t, p)})
}
