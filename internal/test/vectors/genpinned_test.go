package vectors

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/verify"
)

// pinned are bundles under keys that count or do not.
func (m *maker) pinned(l *ledger, bundleIn func(*verify.Bundle) in, good func() *verify.Bundle) {
	name, rotated := string(l.origin), key(m.t, "rotated")
	list := func(from, to string) string {
		return fmt.Sprintf(`{"keys":[{"from_size":%s,"to_size":%s,"use":"log","vkey":"%s"},{"from_size":7,"to_size":null,"use":"log","vkey":"%s"}]}`, from, to, l.vkey(), vkeyOf(m, name, "rotated"))
	}
	rotatedIn := func(from, to string) in {
		return bundleIn(good()).with("key", vkeyOf(m, name, "rotated")).with("keys", list(from, to))
	}
	m.bundle("retired key of these sizes", rotatedIn("0", "8"), "++++++")
	m.bundle("retired key that signs on", rotatedIn("7", "null"), "++++++")
	twice := bundleIn(good()).with("key", vkeyOf(m, name, "rotated")).with("keys", strings.Replace(list("0", "6"), `[`, `[{"from_size":7,"to_size":8,"use":"log","vkey":"`+l.vkey()+`"},`, 1))
	m.bundle("retired key of two ranges of sizes, the first of which holds", twice, "++++++")
	last := bundleIn(good()).with("key", vkeyOf(m, name, "rotated")).with("keys", strings.Replace(list("7", "8"), `[`, `[{"from_size":0,"to_size":6,"use":"log","vkey":"`+l.vkey()+`"},`, 1))
	m.bundle("retired key of two ranges of sizes, the last of which holds", last, "++++++")
	m.bundle("pinned key that the list has for other sizes", bundleIn(good()).with("keys", list("0", "3")), "++++++")
	m.bundle("retired key of smaller trees", rotatedIn("0", "7"), "+-++++")
	m.bundle("retired key of larger trees", rotatedIn("8", "null"), "+-++++")
	m.bundle("retired key that is not told of", bundleIn(good()).with("key", vkeyOf(m, name, "rotated")), "+-++++")
	m.unknown(l.vkey())
	m.bundle("key of another log", bundleIn(good()).with("key", m.signer("log.example/o/other").Verifier().String()), "+-++++")
	m.unknown(l.vkey())
	bend := func(name, signs string, f func(b *verify.Bundle)) {
		b := good()
		f(b)
		m.bundle(name, bundleIn(b), signs)
	}
	bend("signed by another key, which it names", "+-++++", func(b *verify.Bundle) { b.Checkpoint, b.LogKey = l.note(rotated, 7), vkeyOf(m, name, "rotated") })
	m.unknown(vkeyOf(m, name, "rotated"))
	bend("signed by another key, which it names, and event_id of another event", "+-+-++", func(b *verify.Bundle) {
		b.Checkpoint, b.LogKey, b.EventID = l.note(rotated, 7), vkeyOf(m, name, "rotated"), "evt_3"
	})
	bend("signed by another key", "+-++++", func(b *verify.Bundle) { b.Checkpoint = l.note(rotated, 7) })
	bend("names another key", "+-++++", func(b *verify.Bundle) { b.LogKey = vkeyOf(m, name, "rotated") })
	bend("names no key", "+-++++", func(b *verify.Bundle) { b.LogKey = "" })
	bend("names the key with another key id", "+-++++", func(b *verify.Bundle) { b.LogKey = strings.Replace(b.LogKey, "+", "+0", 1) })
	bend("checkpoint with an extension line", "---+++", func(b *verify.Bundle) {
		text := b.Checkpoint[:strings.Index(b.Checkpoint, "\n\n")+1] + "x\n"
		b.Checkpoint = text + "\n" + m.line(string(l.origin), text)
	})
	bend("checkpoint with a leading zero", "---+++", func(b *verify.Bundle) {
		text := strings.Replace(b.Checkpoint[:strings.Index(b.Checkpoint, "\n\n")+1], "\n7\n", "\n07\n", 1)
		b.Checkpoint = text + "\n" + m.line(string(l.origin), text)
	})
	bend("checkpoint with carriage returns", "---+++", func(b *verify.Bundle) { b.Checkpoint = strings.ReplaceAll(b.Checkpoint, "\n", "\r\n") })
	bend("checkpoint of another origin by the log's key", "+-++++", func(b *verify.Bundle) {
		text := strings.Replace(b.Checkpoint[:strings.Index(b.Checkpoint, "\n\n")+1], name, "log.example/o/other", 1)
		b.Checkpoint = text + "\n" + m.line(string(l.origin), text)
	})
	bend("stranger's signature line twice", "---+++", func(b *verify.Bundle) {
		b.Checkpoint += strings.Repeat(lineOf("stranger.example", 7, make([]byte, 9)), 2)
	})
	bend("second line of the key's name and another key id", "++++++", func(b *verify.Bundle) { b.Checkpoint += lineOf(name, 7, make([]byte, 64)) })
	bend("key's signature line twice", "---+++", func(b *verify.Bundle) { b.Checkpoint += b.Checkpoint[strings.Index(b.Checkpoint, "\n\n")+2:] })
}
