package frompage

import "testing"

// TestCutShort contains every prefix of the worked example and of the texts in it: none is readable, and none causes a
// panic.
func TestCutShort(t *testing.T) {
	whole := worked(t)
	b, err := readBundle(whole)
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(_ any, ok bool) bool { return ok }
	for _, c := range []struct {
		name, text string
		read       func(string) bool
	}{
		{"bundle", whole[:len(whole)-1], func(s string) bool { _, err := readBundle(s); return err == nil }}, // it ends with an LF
		{"entry", b.entry, func(s string) bool { return ignore(readEntry(s)) }},
		{"record", *b.record, func(s string) bool { return ignore(readRecord(s)) }},
		{"envelope", *b.envelope, func(s string) bool { return ignore(readEnvelope(s)) }},
		{"checkpoint", b.checkpoint, func(s string) bool { return ignore(readCheckpoint(s)) }},
		{"verifier key", pinned, func(s string) bool { return ignore(readVerifierKey(s)) }},
		{"multikey", read(b).record.publicKey, func(s string) bool { return ignore(readMultikey(s)) }},
	} {
		for i := range len(c.text) {
			if c.read(c.text[:i]) {
				t.Errorf("%s: %d of %d bytes can be read", c.name, i, len(c.text))
			}
			c.read(c.text[:i] + "\x00" + c.text[i+1:])
			c.read(c.text[:i] + `\` + c.text[i+1:])
		}
		if !c.read(c.text) {
			t.Errorf("%s can't be read", c.name)
		}
	}
}
