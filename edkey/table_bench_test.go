package edkey

import "testing"

// The table beside crypto/ed25519, for a message of 32 bytes.
func BenchmarkTable(b *testing.B) {
	k := testKey(b, 1)
	message := make([]byte, 32)
	sig := k.Sign(message)
	table, err := NewBase().NewTable(k.Public())
	if err != nil {
		b.Fatal(err)
	}
	for name, verify := range map[string]func(message, sig []byte) bool{"table": table.Verify, "plain": k.Public().Verify} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !verify(message, sig[:]) {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	base, key := NewBase(), testKey(b, 1).Public()
	for b.Loop() {
		if _, err := base.NewTable(key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewBase(b *testing.B) {
	for b.Loop() {
		NewBase()
	}
}
