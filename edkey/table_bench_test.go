package edkey

import (
	"fmt"
	"testing"
)

// The tables compared with crypto/ed25519, for a message of 32 bytes.
func BenchmarkTable(b *testing.B) {
	k := testKey(b, 1)
	message := make([]byte, 32)
	sig := k.Sign(message)
	both := mustTables(b, NewBase(), k.Public())
	for name, verify := range map[string]func(message, sig []byte) bool{
		"narrow": both[0].Verify, "wide": both[1].Verify, "plain": k.Public().Verify} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !verify(message, sig[:]) {
					b.Fatal("rejected")
				}
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	base, key := NewBase(), testKey(b, 1).Public()
	for name, compute := range map[string]func(Public) (*Table, error){"narrow": base.NewTable, "wide": base.NewWideTable} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compute(key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNewBase(b *testing.B) {
	for b.Loop() {
		NewBase()
	}
}

// Verification with one key, and with more keys than the processor's caches hold in turn, each of another message.
func BenchmarkTables(b *testing.B) {
	base := NewBase()
	for _, n := range []int{1, 1000} {
		tables, sigs := make([]*Table, n), make([][64]byte, n)
		for i := range tables {
			k := NewPrivate()
			tables[i], _ = base.NewTable(k.Public())
			sigs[i] = k.Sign([]byte{byte(i)})
		}
		b.Run(fmt.Sprint("keys=", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if i %= n; !tables[i].Verify([]byte{byte(i)}, sigs[i][:]) {
					b.Fatal("rejected")
				}
			}
		})
	}
}
