package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func private(t testing.TB, name string) edkey.Private {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	k, err := edkey.PrivateFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signer returns the same log key for the same name.
func signer(t testing.TB, name string) tlog.SignerKey {
	t.Helper()
	k, err := tlog.NewSignerKey(name, private(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// witness returns the same witness for the same name.
func witness(t testing.TB, name string) tlog.WitnessSigner {
	t.Helper()
	k, err := tlog.NewWitnessSigner(name, private(t, "witness "+name))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func logLine(t testing.TB, name string) string {
	return "log " + signer(t, name).Verifier().String() + "\n"
}

func witnessLines(t testing.TB, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("witness " + name + " " + witness(t, name+".example").Key().String() + "\n")
	}
	return b.String()
}

// note returns a checkpoint of a log with cosignatures.
func note(t testing.TB, log string, by ...string) []byte {
	t.Helper()
	signed, err := signer(t, log).Sign(tlog.Checkpoint{Origin: id.Origin(log), Size: 7, Root: tlog.LeafHash(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := tlog.ParseNote(signed)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range by {
		if n, err = n.Add(witness(t, name+".example").Cosign(n.Text, 1_000_000)); err != nil {
			t.Fatal(err)
		}
	}
	return n.Bytes()
}

// twoLevels returns the example of C2SP tlog-policy.
func twoLevels(t testing.TB) string {
	return logLine(t, "log.example") + "\n" + witnessLines(t, "X1", "X2", "X3") + "group X-witnesses 2 X1 X2 X3\n\n" +
		witnessLines(t, "Y1", "Y2", "Y3") + "group Y-witnesses any Y1 Y2 Y3\n\n" +
		"group X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n"
}

func TestTextRoundTrips(t *testing.T) {
	vkey := witness(t, "W.example").Key().String()
	for name, text := range map[string]string{
		"nothing but a quorum":      "quorum none\n",
		"a log":                     logLine(t, "log.example") + "quorum none\n",
		"two levels":                twoLevels(t),
		"a witness for quorum":      witnessLines(t, "A", "B") + "quorum B\n",
		"what follows the quorum":   witnessLines(t, "A") + "quorum A\n" + witnessLines(t, "B") + "group g all B\n",
		"blanks and comments":       "# \xff\n \t# quorum A\n\n\t witness \t A " + vkey + "  https://w.example/p \n\tquorum\tA \n",
		"names of octets":           "witness \xff#'\" " + vkey + " \xe2\x84\xaa\nquorum \xff#'\"\n",
		"keywords as names":         "witness quorum " + vkey + "\ngroup group 1 quorum\nquorum group\n",
		"log and witness of a name": "log " + signer(t, "W.example").Verifier().String() + " https://log.example/\n" + witnessLines(t, "W") + "quorum W\n",
	} {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := Parse([]byte(p.Text()))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%s: got %+v, %v, want %+v", name, again, err, p)
		}
		if again.Text() != p.Text() {
			t.Errorf("%s: the text changes when it is parsed and written again", name)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	a, b := witnessLines(t, "A"), witnessLines(t, "B")
	vkey, log := witness(t, "A.example").Key().String(), signer(t, "log.example").Verifier()
	public, err := edkey.ParsePublic(witness(t, "A.example").Key().Typed()[1:])
	if err != nil {
		t.Fatal(err)
	}
	renamed, err := tlog.NewWitnessKey("other.example", public)
	if err != nil {
		t.Fatal(err)
	}
	renamedLog, err := tlog.NewVerifierKey("other.example", log.Public())
	if err != nil {
		t.Fatal(err)
	}
	many := func(line func(i int) string, n int) string {
		var s strings.Builder
		for i := range n {
			s.WriteString(line(i))
		}
		return s.String()
	}
	for name, text := range map[string]string{
		"empty":                             "",
		"no quorum":                         a,
		"a comment alone":                   "# quorum none\n",
		"two quorums":                       "quorum none\nquorum none\n",
		"quorum before its name":            "quorum A\n" + a,
		"quorum of an unknown name":         a + "quorum B\n",
		"quorum of a vkey":                  a + "quorum " + vkey + "\n",
		"quorum without a name":             a + "quorum\n",
		"quorum of two names":               a + b + "quorum A B\n",
		"quorum in upper case":              a + "QUORUM A\n",
		"quorum None":                       "quorum None\n",
		"no line end":                       a + "quorum A",
		"carriage returns":                  strings.ReplaceAll(a+"quorum A\n", "\n", "\r\n"),
		"zero byte":                         "quorum none\n#\x00\n",
		"delete":                            "quorum none\n#\x7f\n",
		"form feed":                         "quorum none\f\n",
		"another keyword":                   "quorum none\nmirror x\n",
		"a trailing line":                   "quorum none\nx\n",
		"too long":                          "quorum none\n#" + strings.Repeat("x", MaxText) + "\n",
		"witness without a key":             "witness A\nquorum none\n",
		"witness without a name":            "witness " + vkey + "\nquorum none\n",
		"witness with more":                 "witness A " + vkey + " https://a https://b\nquorum none\n",
		"witness with a log's key":          "witness A " + log.String() + "\nquorum none\n",
		"witness of another key hash":       "witness A " + strings.Replace(vkey, "+", "+0", 1) + "\nquorum none\n",
		"witness called none":               "witness none " + vkey + "\nquorum none\n",
		"witness twice":                     a + strings.Replace(a, "witness A", "witness B", 1) + "quorum none\n",
		"witness twice under another name":  a + "witness B " + renamed.String() + "\nquorum none\n",
		"name twice":                        a + strings.Replace(b, "witness B", "witness A", 1) + "quorum none\n",
		"log without a key":                 "log\nquorum none\n",
		"log with a witness's key":          "log " + vkey + "\nquorum none\n",
		"log with more":                     "log " + log.String() + " https://a https://b\nquorum none\n",
		"log twice":                         logLine(t, "log.example") + logLine(t, "log.example") + "quorum none\n",
		"log twice under another name":      logLine(t, "log.example") + "log " + renamedLog.String() + "\nquorum none\n",
		"group without members":             a + "group g any\nquorum none\n",
		"group of all of none":              a + "group g all\nquorum none\n",
		"group of an unknown name":          a + "group g any A B\nquorum none\n",
		"group before its member":           "group g any A\n" + a + "quorum none\n",
		"group of itself":                   a + "group g any A g\nquorum none\n",
		"group of none":                     a + "group g any A none\nquorum none\n",
		"group called none":                 a + "group none any A\nquorum none\n",
		"group called as a witness":         a + b + "group B any A\nquorum none\n",
		"group called as its member":        a + "group A any A\nquorum none\n",
		"member twice in a group":           a + b + "group g 2 A B A\nquorum none\n",
		"member in two groups":              a + b + "group g any A\ngroup h any A B\nquorum none\n",
		"threshold 0":                       a + "group g 0 A\nquorum none\n",
		"threshold above the members":       a + b + "group g 3 A B\nquorum none\n",
		"threshold with a leading zero":     a + b + "group g 02 A B\nquorum none\n",
		"threshold with a sign":             a + b + "group g +2 A B\nquorum none\n",
		"negative threshold":                a + b + "group g -1 A B\nquorum none\n",
		"threshold beyond numbers":          a + b + "group g 99999999999999999999 A B\nquorum none\n",
		"threshold in upper case":           a + b + "group g ALL A B\nquorum none\n",
		"more witnesses than counted":       many(func(i int) string { return witnessLines(t, fmt.Sprint("w", i)) }, MaxItems+1) + "quorum none\n",
		"more logs than counted":            many(func(i int) string { return logLine(t, fmt.Sprint("l", i)) }, MaxItems+1) + "quorum none\n",
		"more groups than counted":          a + "group g0 1 A\n" + many(func(i int) string { return fmt.Sprintf("group g%d 1 g%d\n", i+1, i) }, MaxItems) + "quorum none\n",
		"Kelvin sign for the letter K":      strings.Replace(a, "witness A", "witness \xe2\x84\xaa", 1) + "quorum K\n",
		"no-break space between the items":  "quorum\u00a0none\n",
		"witness of post-quantum signature": "witness A a+00000000+Bg==\nquorum none\n",
	} {
		if p, err := Parse([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

func TestValidateRejectsWhatTextCannotExpress(t *testing.T) {
	key := witness(t, "A.example").Key()
	log := signer(t, "log.example").Verifier()
	for name, p := range map[string]Policy{
		"zero":                  {},
		"no key":                {Witnesses: []Witness{{Name: "A"}}, Quorum: None},
		"no log key":            {Logs: []Log{{}}, Quorum: None},
		"no name":               {Witnesses: []Witness{{Key: key}}, Quorum: None},
		"name with a space":     {Witnesses: []Witness{{Name: "A B", Key: key}}, Quorum: None},
		"name with a line end":  {Witnesses: []Witness{{Name: "A\nquorum none", Key: key}}, Quorum: None},
		"URL with a line end":   {Witnesses: []Witness{{Name: "A", Key: key, URL: "x\ny"}}, Quorum: None},
		"log URL with a tab":    {Logs: []Log{{Key: log, URL: "x\ty"}}, Quorum: None},
		"group without members": {Groups: []Group{{Name: "g"}}, Quorum: None},
		"unknown quorum":        {Quorum: "A"},
		"too long":              {Logs: []Log{{Key: log, URL: strings.Repeat("x", MaxText)}}, Quorum: None},
	} {
		if err := p.Validate(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestQuorum(t *testing.T) {
	p, err := Parse([]byte(twoLevels(t)))
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]bool{
		"": false, "X1 X2": false, "Y1": false, "X1 Y1": false, "X1 X2 Y1": true, "X2 X3 Y3": true, "X1 X2 X3 Y1 Y2 Y3": true,
		"X1 Y1 Y2 Y3": false, "X1 X2 Z": false,
	} {
		o, err := p.Open(note(t, "log.example", strings.Fields(by)...))
		if (err == nil) != want || err != nil && !errors.Is(err, ErrQuorum) {
			t.Errorf("cosigned by %q: got %v, want %v", by, err, want)
		}
		known := len(strings.Fields(strings.ReplaceAll(by, "Z", "")))
		if len(o.Cosignatures) != known || o.Checkpoint.Size != 7 || o.Log != p.Logs[0].Key {
			t.Errorf("cosigned by %q: got %+v", by, o)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	p, err := Parse([]byte(logLine(t, "log.example") + logLine(t, "two.example") + witnessLines(t, "A") + "quorum A\n"))
	if err != nil {
		t.Fatal(err)
	}
	good := note(t, "two.example", "A")
	if o, err := p.Open(good); err != nil || o.Log != p.Logs[1].Key || o.Cosignatures[0].Time != 1_000_000 {
		t.Fatalf("got %+v, %v", o, err)
	}
	bent := func(old, new string) []byte { return []byte(strings.Replace(string(good), old, new, 1)) }
	for name, row := range map[string]struct {
		note []byte
		want error
	}{
		"a log that is not listed":    {note(t, "three.example", "A"), ErrLog},
		"another size":                {bent("\n7\n", "\n8\n"), ErrLog},
		"another witness by its name": {bent("— A.example ", "— B.example "), ErrQuorum},
		"no note":                     {[]byte("x"), tlog.ErrMalformed},
		"size with a leading zero":    {bent("\n7\n", "\n07\n"), ErrLog},
		"carriage return":             {bent("\n7\n", "\r\n7\n"), tlog.ErrMalformed},
	} {
		if _, err := p.Open(row.note); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
	none := &Policy{Quorum: None}
	if _, err := none.Open(good); !errors.Is(err, ErrLog) {
		t.Errorf("unknown log: got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(twoLevels(f))
	f.Add("quorum none\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := Parse([]byte(p.Text()))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q is parsed as %+v, %v", p.Text(), again, err)
		}
		p.Quorate(func(tlog.WitnessKey) bool { return true })
	})
}
