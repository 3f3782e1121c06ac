package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/agentledger/agentledger/internal/seal"
)

const (
	contextA = "log-key log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	contextB = "log-key log.example/o/00000000-0000-4000-8000-000000000002"

	// "secret", sealed in context "test" under the key 00 01 … 1f.
	storedForm = "AXOuXypsdK/dW4bIkaZt8wI+GwD8ln1KwIsljbn+O4PWd4i0/IHFV/9adzjlIJJEscr/SrupYw=="
)

func ring(t testing.TB, active seal.Key, older ...seal.Key) *seal.Keyring {
	t.Helper()
	r, err := seal.NewKeyring(active, older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sealed(t testing.TB, r *seal.Keyring, context, plaintext string) []byte {
	t.Helper()
	b, err := r.Seal(context, []byte(plaintext))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealOpens(t *testing.T) {
	r := ring(t, seal.NewKey())
	for _, want := range []string{"", "x", "0123456789abcdef0123456789abcdef"} {
		b := sealed(t, r, contextA, want)
		if len(want) > 8 && bytes.Contains(b, []byte(want)) {
			t.Errorf("%q lies open in the sealed value", want)
		}
		got, err := r.Open(contextA, b)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if bytes.Equal(sealed(t, r, contextA, "x"), sealed(t, r, contextA, "x")) {
		t.Error("the same secret sealed twice gives the same bytes")
	}
}

// The sealed form is stored: a value that was sealed once can be opened permanently.
func TestOpenStoredForm(t *testing.T) {
	key, err := seal.KeyFromSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(storedForm)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ring(t, key).Open("test", b)
	if err != nil || string(got) != "secret" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRotation(t *testing.T) {
	older, newer := seal.NewKey(), seal.NewKey()
	before := ring(t, older)
	after := ring(t, newer, older)
	old := sealed(t, before, contextA, "secret")
	got, err := after.Open(contextA, old)
	if err != nil || string(got) != "secret" {
		t.Errorf("older key: got %q, %v", got, err)
	}
	fresh := sealed(t, after, contextA, "secret")
	if _, err := ring(t, newer).Open(contextA, fresh); err != nil {
		t.Errorf("the new ring does not seal under its active key: %v", err)
	}
	if _, err := before.Open(contextA, fresh); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("unknown key: got %v, want ErrUnknownKey", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	r := ring(t, seal.NewKey(), seal.NewKey())
	good := sealed(t, r, contextA, "secret")
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if got, err := r.Open(contextA, b); err == nil {
				t.Fatalf("byte %d bit %d flipped: got %q", i, bit, got)
			}
		}
	}
	for n := range good {
		if got, err := r.Open(contextA, good[:n]); err == nil {
			t.Errorf("cut to %d bytes: got %q", n, got)
		}
	}
	for name, tc := range map[string]struct {
		context string
		b       []byte
	}{
		"nil":                            {contextA, nil},
		"one byte more":                  {contextA, append(bytes.Clone(good), 0)},
		"another organization's context": {contextB, good},
		"longer context":                 {contextA + "/2", good},
		"empty context":                  {"", good},
	} {
		if got, err := r.Open(tc.context, tc.b); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%s: got %q, %v, want ErrDamaged", name, got, err)
		}
	}
}

// A header that is changed to another key of the same ring must not open either.
func TestOpenRefusesSwappedKeyID(t *testing.T) {
	a, b := seal.NewKey(), seal.NewKey()
	r := ring(t, a, b)
	mixed := sealed(t, r, contextA, "secret")
	copy(mixed[:9], sealed(t, ring(t, b), contextA, "secret")[:9])
	if got, err := r.Open(contextA, mixed); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("got %q, %v, want ErrDamaged", got, err)
	}
}

func TestKeyringRefuses(t *testing.T) {
	k := seal.NewKey()
	for name, keys := range map[string][]seal.Key{
		"no active key":      {{}},
		"no older key":       {k, {}},
		"active given twice": {k, k},
		"older given twice":  {seal.NewKey(), k, k},
	} {
		if _, err := seal.NewKeyring(keys[0], keys[1:]...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := ring(t, k).Seal("", []byte("secret")); err == nil {
		t.Error("sealed without a context")
	}
}

func FuzzOpen(f *testing.F) {
	r := ring(f, seal.NewKey())
	good := sealed(f, r, contextA, "secret")
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := r.Open(contextA, b); err == nil && !bytes.Equal(b, good) {
			t.Errorf("%x opens to %q", b, got)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	r := ring(b, seal.NewKey())
	value := sealed(b, r, contextA, "0123456789abcdef0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open(contextA, value); err != nil {
			b.Fatal(err)
		}
	}
}

// A value is resealed under the active key once, and then opens without the older one.
func TestReseal(t *testing.T) {
	older, newer := seal.NewKey(), seal.NewKey()
	before, err := seal.NewKeyring(older)
	if err != nil {
		t.Fatal(err)
	}
	both, err := seal.NewKeyring(newer, older)
	if err != nil {
		t.Fatal(err)
	}
	after, err := seal.NewKeyring(newer)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := before.Seal("context", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	now, changed, err := both.Reseal("context", sealed)
	if err != nil || !changed {
		t.Fatalf("got %v, %v", changed, err)
	}
	if plaintext, err := after.Open("context", now); err != nil || string(plaintext) != "secret" {
		t.Errorf("got %q, %v", plaintext, err)
	}
	if again, changed, err := both.Reseal("context", now); err != nil || changed || string(again) != string(now) {
		t.Errorf("a second time: %v, %v", changed, err)
	}
	for name, f := range map[string]func() ([]byte, bool, error){
		"another context": func() ([]byte, bool, error) { return both.Reseal("other", sealed) },
		"an unknown key":  func() ([]byte, bool, error) { return after.Reseal("context", sealed) },
		"nothing":         func() ([]byte, bool, error) { return both.Reseal("context", nil) },
	} {
		if _, changed, err := f(); err == nil || changed {
			t.Errorf("%s: got %v, %v", name, changed, err)
		}
	}
}
