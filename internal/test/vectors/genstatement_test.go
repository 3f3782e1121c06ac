package vectors

import (
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// stating makes an event the service's own, about a log key.
func stating(payload map[string]any) forgery {
	return forgery{
		unsigned: func(e map[string]any) { e["action_kind"], e["payload"] = verify.LogKeyKind, payload },
		record: func(r *event.Record) {
			r.Signer, r.Custody, r.IngestKeyID = event.SignerSystem, event.CustodyServer, ""
		},
	}
}

// keyList returns a list of known keys, in the form of transparency/keys. A size of 0 means no end.
func keyList(m *maker, keys ...map[string]any) string { return m.text(map[string]any{"keys": keys}) }

func knownKey(vkey string, from, to int) map[string]any {
	k := map[string]any{"vkey": vkey, "use": "log", "from_size": from, "to_size": nil}
	if to > 0 {
		k["to_size"] = to
	}
	return k
}

// keyStatements are statements about a log's next key: event 5 of a log whose tree of size 6 two keys signed.
func keyStatements(m *maker) {
	name := string(emptyLedger(m, 1).origin)
	first, newer, third := emptyLedger(m, 1).vkey(), vkeyOf(m, name, "rotated"), vkeyOf(m, name, "third")
	created := func(vkey any) map[string]any {
		return map[string]any{"transition": "log_key_created", "vkey": vkey}
	}
	newLog := func(f forgery, more int) *ledger {
		l := emptyLedger(m, 1)
		for range 5 {
			l.add(forgery{})
		}
		l.add(f)
		for range more {
			l.add(forgery{})
		}
		return l
	}
	// signedBy is the bundle of event 5, whose checkpoint has lines of these keys of the log, "" for its first one.
	signedBy := func(l *ledger, d id.Disclosure, names ...string) *verify.Bundle {
		size := len(l.events)
		b := l.bundle(5, size, d)
		b.Checkpoint, b.LogKeys = strings.SplitN(b.Checkpoint, "\n\n", 2)[0]+"\n\n", nil
		for _, name := range names {
			by, vkey := l.log, l.vkey()
			if name != "" {
				by, vkey = key(m.t, name), vkeyOf(m, string(l.origin), name)
			}
			b.Checkpoint += strings.SplitN(l.note(by, size), "\n\n", 2)[1]
			b.LogKeys = append(b.LogKeys, vkey)
		}
		b.LogKey = b.LogKeys[0]
		return b
	}
	good := func() *verify.Bundle {
		return signedBy(newLog(stating(created(newer)), 0), id.DiscloseFull, "", "rotated")
	}
	known := keyList(m, knownKey(first, 0, 0))
	statement := func(b *verify.Bundle) in { return in{"bundle": m.text(b), "keys": known} }
	states := func(vkey, by string) map[string]any { return map[string]any{"vkey": vkey, "by": by, "from_size": "6"} }

	m.accept("a statement", statement(good()), states(newer, first))
	m.accept("the known key signs from this size on", statement(good()).with("keys", keyList(m, knownKey(first, 6, 0))), states(newer, first))
	m.accept("another key is known too, which has an end", statement(good()).with("keys", keyList(m, knownKey(third, 0, 3), knownKey(first, 3, 0))),
		states(newer, first))
	m.accept("the payload has another member",
		statement(signedBy(newLog(stating(map[string]any{"transition": "log_key_created", "vkey": newer, "more": 1}), 0), id.DiscloseFull, "", "rotated")),
		states(newer, first))
	m.accept("a third key signs too", statement(signedBy(newLog(stating(created(newer)), 0), id.DiscloseFull, "", "rotated", "third")), states(newer, first))

	m.refuse("the known key has an end behind this size", statement(good()).with("keys", keyList(m, knownKey(first, 0, 9))))
	m.refuse("the known key ended at this size", statement(good()).with("keys", keyList(m, knownKey(first, 0, 6))))
	m.refuse("the known key signs larger trees only", statement(good()).with("keys", keyList(m, knownKey(first, 7, 0))))
	m.refuse("only other keys are known", statement(good()).with("keys", keyList(m, knownKey(third, 0, 0))))
	m.refuse("the stated key is known", statement(good()).with("keys", keyList(m, knownKey(first, 0, 0), knownKey(newer, 6, 0))))
	m.refuse("the stated key is known and has an end", statement(good()).with("keys", keyList(m, knownKey(first, 0, 0), knownKey(newer, 2, 4))))
	m.refuse("the known key did not sign", statement(signedBy(newLog(stating(created(newer)), 0), id.DiscloseFull, "rotated")))
	m.refuse("the stated key did not sign", statement(signedBy(newLog(stating(created(newer)), 0), id.DiscloseFull, "")))
	m.refuse("the tree is larger", statement(signedBy(newLog(stating(created(newer)), 1), id.DiscloseFull, "", "rotated")))
	m.refuse("without the envelope", statement(signedBy(newLog(stating(created(newer)), 0), id.DiscloseRecord, "", "rotated")))
	m.refuse("without the record", statement(signedBy(newLog(stating(created(newer)), 0), id.DiscloseCommitment, "", "rotated")))
	forged, smaller := good(), newLog(forgery{}, 0)
	lines := func(note string) string { return strings.SplitN(note, "\n\n", 2)[1] }
	forged.Checkpoint = strings.SplitN(forged.Checkpoint, "\n\n", 2)[0] + "\n\n" + lines(smaller.note(smaller.log, 5)) +
		lines(newLog(stating(created(newer)), 0).note(key(m.t, "rotated"), 6))
	m.refuse("the known key's signature is of another tree", statement(forged))

	for name, payload := range ordered(map[string]map[string]any{
		"it states a retired key":              {"transition": "log_key_retired", "vkey": newer},
		"no transition":                        {"vkey": newer},
		"no key":                               {"transition": "log_key_created"},
		"the key is null":                      created(nil),
		"the key is a number":                  created(1),
		"the key is no key":                    created("x"),
		"the key is of another log":            created(vkeyOf(m, "log.example/o/other", "rotated")),
		"the key did not sign":                 created(third),
		"the key is the known one":             created(first),
		"the key is that of a witness by type": created(strings.Replace(newer, "+A", "+B", 1)),
	}) {
		m.refuse(name, statement(signedBy(newLog(stating(payload), 0), id.DiscloseFull, "", "rotated")))
	}
	ofAgent := stating(created(newer))
	ofAgent.record = nil
	m.refuse("an agent's event", statement(signedBy(newLog(ofAgent, 0), id.DiscloseFull, "", "rotated")))
	otherKind := stating(created(newer))
	otherKind.unsigned = func(e map[string]any) { e["action_kind"], e["payload"] = "ledger_settings_changed", created(newer) }
	m.refuse("another kind of event", statement(signedBy(newLog(otherKind, 0), id.DiscloseFull, "", "rotated")))
	wrong := good()
	wrong.Inclusion.Hashes[0][0] ^= 1
	m.refuse("the proof does not hold", statement(wrong))
	m.refuse("no bundle", in{"bundle": "{}", "keys": known})
}
