package witness

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// signedCheckpoint returns a note of a log.
func signedCheckpoint(t testing.TB, size id.Index) (tlog.Checkpoint, []byte) {
	t.Helper()
	key, err := tlog.NewSignerKey("log.example/o/one", edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	c := tlog.Checkpoint{Origin: "log.example/o/one", Size: size, Root: tlog.LeafHash([]byte(fmt.Sprint(size)))}
	note, err := key.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, note
}

func TestRequestIsReadByAWitness(t *testing.T) {
	c, note := signedCheckpoint(t, 1<<62+1)
	for _, n := range []int{0, 1, 63} {
		proof := make([]id.Hash, n)
		for i := range proof {
			proof[i] = tlog.LeafHash([]byte{byte(i)})
		}
		old := id.Index(min(n, 1) * 12345)
		got, err := witnesstest.ParseRequest(addCheckpointBody(old, proof, note))
		if err != nil || got.Old != old || len(got.Proof) != n || got.Checkpoint != c || !bytes.Equal(got.Note, note) {
			t.Fatalf("%d hashes: got %+v, %v", n, got, err)
		}
		for i := range proof {
			if got.Proof[i] != proof[i] {
				t.Errorf("hash %d of %d is another", i, n)
			}
		}
	}
	want := "old 7\n" + strings.Repeat("A", 43) + "=\n\n" + string(note)
	if got := string(addCheckpointBody(7, []id.Hash{{}}, note)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAddress(t *testing.T) {
	for prefix, want := range map[string]string{
		"https://w.example":     "https://w.example/add-checkpoint",
		"https://w.example/":    "https://w.example/add-checkpoint",
		"https://w.example/a/b": "https://w.example/a/b/add-checkpoint",
		"HTTPS://W.Example/A/":  "https://w.example/A/add-checkpoint",
	} {
		if got := submissionAddress(prefix); got != want {
			t.Errorf("%s: got %s", prefix, got)
		}
	}
}

func TestConflictSize(t *testing.T) {
	const media = "text/x.tlog.size"
	for name, row := range map[string]struct {
		media, body string
		size        id.Index
		ok          bool
	}{
		"zero":               {media, "0\n", 0, true},
		"a size":             {media, "20852163\n", 20852163, true},
		"the largest":        {media, "9223372036854775807\n", tlog.MaxSize, true},
		"with a parameter":   {media + "; charset=utf-8", "7\n", 7, true},
		"another type":       {"text/plain", "7\n", 0, false},
		"no type":            {"", "7\n", 0, false},
		"nothing":            {media, "", 0, false},
		"a line end alone":   {media, "\n", 0, false},
		"no line end":        {media, "7", 0, false},
		"two line ends":      {media, "7\n\n", 0, false},
		"carriage return":    {media, "7\r\n", 0, false},
		"a leading zero":     {media, "07\n", 0, false},
		"a sign":             {media, "+7\n", 0, false},
		"negative":           {media, "-7\n", 0, false},
		"a space":            {media, " 7\n", 0, false},
		"hexadecimal":        {media, "0x7\n", 0, false},
		"an underscore":      {media, "1_0\n", 0, false},
		"beyond trees":       {media, "9223372036854775808\n", 0, false},
		"beyond 64 bits":     {media, "18446744073709551616\n", 0, false},
		"what is no number":  {media, "conflict\n", 0, false},
		"something behind":   {media, "7\n8\n", 0, false},
		"a broken parameter": {media + "; =", "7\n", 0, false},
	} {
		a := egress.Answer{Status: 409, Header: http.Header{"Content-Type": {row.media}}, Body: []byte(row.body)}
		if size, ok := conflictSize(a); size != row.size || ok != row.ok {
			t.Errorf("%s: got %d, %v", name, size, ok)
		}
	}
}

// testSigner is a witness without a server.
func testSigner(t testing.TB, name string) tlog.WitnessSigner {
	t.Helper()
	w, err := tlog.NewWitnessSigner(name, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// cosignedLine returns the cosignature of a key in an answer.
func cosignedLine(body []byte, key tlog.WitnessKey, text string) (tlog.Signature, bool) {
	e := &endpoint{targets: []*target{{Witness: trust.Witness{Key: key}}}}
	s, ok := e.cosignaturesIn(body, text)[key.Identity()]
	return s, ok
}

func TestCosignatureInAnAnswer(t *testing.T) {
	w, foreign, impostor := testSigner(t, "w.example"), testSigner(t, "v.example"), testSigner(t, "w.example")
	c, _ := signedCheckpoint(t, 7)
	other, _ := signedCheckpoint(t, 8)
	const at = 1_700_000_000_000
	good := w.Cosign(c.Text(), at)
	lines := witnesstest.SignatureLines
	for name, row := range map[string]struct {
		body []byte
		want bool
	}{
		"its line":                        {lines(good), true},
		"among others":                    {lines(foreign.Cosign(c.Text(), at), impostor.Cosign(c.Text(), at), good), true},
		"behind a wrong one of its":       {lines(w.Cosign(other.Text(), at), good), true},
		"others alone":                    {lines(foreign.Cosign(c.Text(), at), impostor.Cosign(c.Text(), at)), false},
		"of another checkpoint":           {lines(w.Cosign(other.Text(), at)), false},
		"a whole note":                    {[]byte(c.Text() + "\n" + string(lines(good))), false},
		"nothing":                         {nil, false},
		"something behind":                {append(lines(good), "ok\n"...), false},
		"without its line end":            {bytes.TrimSuffix(lines(good), []byte("\n")), false},
		"more lines than are ever signed": {bytes.Repeat(lines(good), 101), false},
	} {
		s, ok := cosignedLine(row.body, w.Key(), c.Text())
		if ok != row.want || ok && !bytes.Equal(s.Value, good.Value) {
			t.Errorf("%s: got %v", name, ok)
		}
	}
}

func FuzzConflictSize(f *testing.F) {
	f.Add("text/x.tlog.size", "7\n")
	f.Fuzz(func(t *testing.T, media, body string) {
		size, ok := conflictSize(egress.Answer{Header: http.Header{"Content-Type": {media}}, Body: []byte(body)})
		if ok && (body != fmt.Sprintf("%d\n", size) || size > tlog.MaxSize) {
			t.Errorf("%q is %d", body, size)
		}
	})
}

func FuzzCosignatureIn(f *testing.F) {
	w := testSigner(f, "w.example")
	c, _ := signedCheckpoint(f, 7)
	good := witnesstest.SignatureLines(w.Cosign(c.Text(), 1_700_000_000_000))
	f.Add(good)
	f.Fuzz(func(t *testing.T, body []byte) {
		s, ok := cosignedLine(body, w.Key(), c.Text())
		if !ok {
			return
		}
		if _, err := w.Key().Verify(c.Text(), s); err != nil {
			t.Error(err)
		}
	})
}

// A witness can read what the service sends; what a witness cannot read is never accepted.
func FuzzParseRequest(f *testing.F) {
	_, note := signedCheckpoint(f, 7)
	f.Add(addCheckpointBody(3, []id.Hash{{}}, note))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := witnesstest.ParseRequest(body)
		if err != nil {
			return
		}
		if got := addCheckpointBody(r.Old, r.Proof, r.Note); !bytes.Equal(got, body) {
			t.Errorf("%q is sent as %q", body, got)
		}
	})
}

func FuzzParsePage(f *testing.F) {
	_, note := signedCheckpoint(f, 7)
	p := &ledgerRecord{hints: map[string]*hint{"a": {Size: 7}}}
	p.newest, _ = parseCosigned(note)
	p.quorum = p.newest
	value, err := p.marshalRecord()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := parseRecord(value)
		if err != nil {
			return
		}
		again, err := p.marshalRecord()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRecord(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}
