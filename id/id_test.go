package id_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

func TestOrganization(t *testing.T) {
	const text = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	for _, spelling := range []string{text, strings.ToUpper(text)} {
		o, err := id.ParseOrganization(spelling)
		if err != nil || o.String() != text || string(o.AppendTo([]byte("x"))) != "x"+text {
			t.Errorf("%s: got %s, %v", spelling, o, err)
		}
	}
	for name, bad := range map[string]string{
		"empty": "", "short": text[1:], "long": text + "0", "no dashes": strings.ReplaceAll(text, "-", "0"),
		"braces": "{" + text[1:35] + "}", "not hex": "g" + text[1:], "dash moved": text[:7] + "-" + text[7:8] + text[9:],
	} {
		if _, err := id.ParseOrganization(bad); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if a, b := id.NewOrganization(), id.NewOrganization(); a == b || a.String()[14] != '4' || !strings.ContainsRune("89ab", rune(a.String()[19])) {
		t.Errorf("new ids %s and %s", a, b)
	}
}

func TestHash(t *testing.T) {
	text := strings.Repeat("0f", 32)
	h, err := id.ParseHash(text)
	if err != nil || h.String() != text {
		t.Errorf("got %s, %v", h, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "short": text[2:], "long": text + "00", "upper case": strings.ToUpper(text), "not hex": "x" + text[1:], "space": " " + text[1:],
	} {
		if _, err := id.ParseHash(bad); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDecisionsTighten(t *testing.T) {
	all := []id.Decision{id.Allow, id.AllowWithObligation, id.Deny}
	for i, a := range all {
		for j, b := range all {
			if got, want := a.Tighten(b), all[max(i, j)]; got != want {
				t.Errorf("%s tightened by %s: got %s, want %s", a, b, got, want)
			}
		}
		if back, err := id.ParseDecision(a.String()); err != nil || back != a {
			t.Errorf("%s: got %s, %v", a, back, err)
		}
	}
	for _, bad := range []string{"", "Allow", "allow ", "permit", "none"} {
		if _, err := id.ParseDecision(bad); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestDisclosures(t *testing.T) {
	for _, d := range []id.Disclosure{id.DiscloseCommitment, id.DiscloseRecord, id.DiscloseFull} {
		if back, err := id.ParseDisclosure(d.String()); err != nil || back != d {
			t.Errorf("%s: got %s, %v", d, back, err)
		}
	}
	for _, bad := range []string{"", "FULL", "all"} {
		if _, err := id.ParseDisclosure(bad); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestInstantAgreesWithTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	instants := []id.Instant{0, 1, 999, 1000, -1, -62167219200000, 253402300799999, 253402300800000, -62167219200001}
	for range 10_000 {
		instants = append(instants, id.Instant(rng.Int64N(300_000_000_000_000)-50_000_000_000_000))
	}
	for _, i := range instants {
		want := time.UnixMilli(int64(i)).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := i.String(); got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
		if back, err := id.ParseInstant(want); len(want) == 24 && (err != nil || back != i) {
			t.Errorf("%s: got %d, %v, want %d", want, back, err, i)
		}
	}
	for _, bad := range []string{"", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00.0000Z", "2026-11-20 12:00:00.000Z", "2026-11-31T12:00:00.000Z",
		"2026-11-20T12:00:00.000+00:00", "2026-11-20T24:00:00.000Z", "2026-11-20T12:00:00,000Z"} {
		if _, err := id.ParseInstant(bad); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// For texts that are almost times, ParseInstant agrees with package time.
func TestParseInstantAgreesWithTime(t *testing.T) {
	const layout = "2006-01-02T15:04:05.000Z"
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		text := []byte(id.Instant(rng.Int64N(253402300800000)).String())
		for range rng.IntN(3) {
			text[rng.IntN(len(text))] = "0123456789:-. TZ/\x00\xff\u00e9"[rng.IntN(21)]
		}
		want, err := time.Parse(layout, string(text))
		good := err == nil && want.Format(layout) == string(text)
		if got, err := id.ParseInstant(string(text)); good != (err == nil) || good && got != id.InstantOf(want) {
			t.Errorf("%q: got %d, %v, want %v, %v", text, got, err, want, good)
		}
	}
}

func BenchmarkParseInstant(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := id.ParseInstant("2026-11-20T12:00:00.123Z"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInstant(b *testing.B) {
	buf := make([]byte, 0, 32)
	b.ReportAllocs()
	for b.Loop() {
		buf = id.Instant(1795176000500).AppendTo(buf[:0])
	}
}
