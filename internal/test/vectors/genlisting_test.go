package vectors

import (
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/verify"
)

// forgedListings are second proofs by directories that accepted and signed what is not a listing of the log.
func (m *maker) forgedListings() {
	forge := func(name string, f func(s second) forgery) {
		s := newSecond(m, f)
		s.proof("logged: "+name, s.input(s.bundle(5)), "-")
	}
	forge("listing by an agent", func(s second) forgery { f := honestly(s); f.record = nil; return f })
	forge("listing by a bridge", func(s second) forgery {
		f := honestly(s)
		f.record = func(r *event.Record) { r.Signer = event.SignerBridge }
		return f
	})
	forge("listing in an event of another kind", func(s second) forgery {
		f := honestly(s)
		f.unsigned = func(e map[string]any) {
			e["action_kind"], e["payload"] = "ledger_settings_changed", listing(s.other.listedAs(3), s.log.listedAs(5))
		}
		return f
	})
	forge("another tree of the log", func(s second) forgery {
		fork := s.log.listedAs(5)
		fork["root_hash"] = flipped(treeRoot(s.log.leaves(5))).String()
		return listed(listing(s.other.listedAs(3), fork))
	})
	forge("a smaller tree, without the event", func(s second) forgery { return listed(listing(s.log.listedAs(4))) })
	forge("other logs alone", func(s second) forgery { return listed(listing(s.other.listedAs(7))) })
	forge("the log's origin in another case", func(s second) forgery {
		upper := s.log.listedAs(5)
		upper["origin"] = strings.ToUpper(string(s.log.origin))
		return listed(listing(upper))
	})
}

// bentListings are second proofs by directories that list the log correctly, but in a payload that is not a
// directory's.
func (m *maker) bentListings() {
	list := func(name string, payload func(s second) map[string]any) {
		s := newSecond(m, func(s second) forgery { return listed(payload(s)) })
		s.proof("listing: "+name, s.input(s.bundle(5)), "-")
	}
	list("empty", func(second) map[string]any { return listing() })
	list("a member more", func(s second) map[string]any { p := listing(s.log.listedAs(5)); p["more"] = 1; return p })
	list("no list", func(s second) map[string]any { return map[string]any{"checkpoints": s.log.listedAs(5)} })
	list("descending", func(s second) map[string]any { return listing(s.log.listedAs(5), s.other.listedAs(3)) })
	list("the log twice", func(s second) map[string]any { return listing(s.log.listedAs(5), s.log.listedAs(5)) })
	list("257 logs", func(s second) map[string]any {
		logs := []map[string]any{s.log.listedAs(5)}
		for i := range verify.MaxListed {
			more := s.other.listedAs(3)
			name := "log.example/z/" + string(rune('a'+i/16)) + string(rune('a'+i%16))
			more["origin"], more["log_key"] = name, vkeyOf(m, name, "one for all")
			logs = append(logs, more)
		}
		return listing(logs...)
	})
	for name, change := range ordered(map[string]func(l map[string]any){
		"a log with a member more":           func(l map[string]any) { l["more"] = 1 },
		"a log without log_key":              func(l map[string]any) { delete(l, "log_key") },
		"a log without root_hash":            func(l map[string]any) { delete(l, "root_hash") },
		"a log without tree_size":            func(l map[string]any) { delete(l, "tree_size") },
		"a log without origin":               func(l map[string]any) { delete(l, "origin") },
		"a log with root_hash null":          func(l map[string]any) { l["root_hash"] = nil },
		"a log with root_hash in upper case": func(l map[string]any) { l["root_hash"] = strings.ToUpper(l["root_hash"].(string)) },
		"a log with root_hash of 31 bytes":   func(l map[string]any) { l["root_hash"] = l["root_hash"].(string)[2:] },
		"a log of tree_size 0":               func(l map[string]any) { l["tree_size"] = 0 },
		"a log of tree_size 2^53":            func(l map[string]any) { l["tree_size"] = 1 << 53 },
		"a log of negative tree_size":        func(l map[string]any) { l["tree_size"] = -3 },
		"a log with tree_size as text":       func(l map[string]any) { l["tree_size"] = "3" },
		"a log with tree_size not whole":     func(l map[string]any) { l["tree_size"] = 3.5 },
		"a log with the key of another":      func(l map[string]any) { l["log_key"] = vkeyOf(m, "log.example/o/other", "other") },
		"a log with a witness's key":         func(l map[string]any) { l["log_key"] = m.witness(l["origin"].(string)).Key().String() },
		"a log that is a text":               nil,
	}) {
		// The problem is in the listing of another log.
		list(name, func(s second) map[string]any {
			if change == nil {
				return map[string]any{"checkpoints": []any{"x", s.log.listedAs(5)}}
			}
			bent := s.other.listedAs(3)
			change(bent)
			return listing(bent, s.log.listedAs(5))
		})
	}
}
