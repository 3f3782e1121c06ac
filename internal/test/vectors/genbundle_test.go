package vectors

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// verdictsOf reads six signs as the verdicts inclusion, checkpoint, chain, record, signature, envelope, and an optional
// seventh as directory; 0 is null.
func verdictsOf(signs string) map[string]any {
	verdicts := map[string]any{}
	for i, name := range []string{"inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok", "directory_ok"}[:len(signs)] {
		switch signs[i] {
		case '+':
			verdicts[name] = true
		case '-':
			verdicts[name] = false
		default:
			verdicts[name] = nil
		}
	}
	return verdicts
}

// bundle adds a vector. Signs without a minus are those of a valid bundle.
func (m *maker) bundle(name string, input in, signs string) {
	v := Vector{Name: name, Input: input, Verdict: Accept, Expect: verdictsOf(signs)}
	if strings.Contains(signs, "-") {
		v.Verdict = Refuse
	}
	m.add(v)
}

// unknown notes about the last vector that its only problem is that it is signed by these keys, which its input does
// not give.
func (m *maker) unknown(vkeys ...string) {
	v := &m.Vectors[len(m.Vectors)-1]
	if v.Verdict != Refuse {
		m.t.Fatalf("%s: nothing is wrong", v.Name)
	}
	if v.Expect == nil {
		v.Expect = map[string]any{}
	}
	var signers []any
	for _, vkey := range vkeys {
		parts := strings.SplitN(vkey, "+", 3)
		signers = append(signers, parts[0]+"+"+parts[1])
	}
	v.Expect["unknown_keys"] = signers
}

func bundles(m *maker) {
	l := newLedger(m, 1, forgery{})
	bundleIn := func(b *verify.Bundle) in { return in{"bundle": m.text(b), "key": l.vkey()} }
	good := func() *verify.Bundle { return l.bundle(4, 7, id.DiscloseFull) }
	m.honest(l, bundleIn)
	m.documents(bundleIn(good()), good())
	m.bent(l, bundleIn, good)
	m.pinned(l, bundleIn, good)
	m.overlap(l, bundleIn, good)
	m.forged()
}

// overlap are bundles from a time in which two keys of a log sign.
func (m *maker) overlap(l *ledger, bundleIn func(*verify.Bundle) in, good func() *verify.Bundle) {
	name := string(l.origin)
	newer, third := vkeyOf(m, name, "rotated"), vkeyOf(m, name, "third")
	other := m.signer("log.example/o/other").Verifier().String()
	both := func() *verify.Bundle {
		b := good()
		b.Checkpoint += strings.SplitN(l.note(key(m.t, "rotated"), 7), "\n\n", 2)[1]
		b.LogKeys = []string{l.vkey(), newer}
		return b
	}
	pin := func(vkey string, b *verify.Bundle) in { return bundleIn(b).with("key", vkey) }
	bend := func(name, signs, vkey string, f func(b *verify.Bundle)) {
		b := both()
		f(b)
		m.bundle(name, pin(vkey, b), signs)
	}
	m.bundle("two keys sign, the older one pinned", pin(l.vkey(), both()), "++++++")
	m.bundle("two keys sign, the newer one pinned", pin(newer, both()), "++++++")
	bend("two keys sign, the newer one is log_key and the older one pinned", "++++++", l.vkey(), func(b *verify.Bundle) { b.LogKey = newer })
	bend("two keys sign, log_keys in the other order", "++++++", newer, func(b *verify.Bundle) { b.LogKeys = []string{newer, l.vkey()} })
	m.bundle("two keys sign, a third one pinned", pin(third, both()), "+-++++")
	m.unknown(l.vkey())
	m.bundle("two keys sign, a key of another log pinned", pin(other, both()), "+-++++")
	m.unknown(l.vkey())
	null := pin(l.vkey(), both())
	text := null["bundle"].(string)
	list := text[strings.Index(text, `"log_keys":`)+len(`"log_keys":`):]
	list = list[:strings.Index(list, "]")+1]
	m.bundle("log_keys null", null.with("bundle", strings.Replace(text, list, "null", 1)), "++++++")
	m.bundle("log_keys empty", null.with("bundle", strings.Replace(text, list, "[]", 1)), "++++++")
	for _, c := range []struct{ name, list string }{
		{"log_keys is a text", `"` + newer + `"`}, {"log_keys with null", `["` + l.vkey() + `",null]`}, {"log_keys with a number", `["` + l.vkey() + `",1]`},
	} {
		m.refuse(c.name, null.with("bundle", strings.Replace(text, list, c.list, 1)))
	}
	bend("two keys sign and log_keys is not there, the newer one pinned", "+-++++", newer, func(b *verify.Bundle) { b.LogKeys = nil })
	m.unknown(l.vkey())
	bend("log_keys names a key that did not sign", "+-++++", l.vkey(), func(b *verify.Bundle) { b.LogKeys = append(b.LogKeys, third) })
	bend("log_keys names a key that did not sign, which is pinned", "+-++++", third, func(b *verify.Bundle) { b.LogKeys = append(b.LogKeys, third) })
	bend("log_keys names a key twice", "+-++++", newer, func(b *verify.Bundle) { b.LogKeys = append(b.LogKeys, newer) })
	bend("log_keys without log_key", "+-++++", newer, func(b *verify.Bundle) { b.LogKeys = []string{newer} })
	bend("log_keys with a key of another log", "+-++++", newer, func(b *verify.Bundle) { b.LogKeys = append(b.LogKeys, other) })
	bend("the newer key's line does not verify", "+-++++", newer, func(b *verify.Bundle) {
		b.Checkpoint = good().Checkpoint + strings.SplitN(l.note(key(m.t, "rotated"), 6), "\n\n", 2)[1]
	})
}

// honest are bundles of a correct log.
func (m *maker) honest(l *ledger, bundleIn func(*verify.Bundle) in) {
	m.bundle("full", bundleIn(l.bundle(4, 7, id.DiscloseFull)), "++++++")
	m.bundle("record", bundleIn(l.bundle(4, 7, id.DiscloseRecord)), "+++++0")
	m.bundle("commitment", bundleIn(l.bundle(4, 7, id.DiscloseCommitment)), "+++000")
	m.bundle("the first event", bundleIn(l.bundle(0, 7, id.DiscloseFull)), "++++++")
	m.bundle("the only event", bundleIn(l.bundle(0, 1, id.DiscloseFull)), "++++++")
	m.bundle("the last event", bundleIn(l.bundle(6, 7, id.DiscloseFull)), "++++++")
	m.bundle("form canonical, full", bundleIn(l.bundle(5, 7, id.DiscloseFull)), "++++++")
	m.bundle("form canonical, record", bundleIn(l.bundle(5, 7, id.DiscloseRecord)), "++++00")
	erased := l.bundle(4, 7, id.DiscloseFull)
	at := start + 1000
	erased.Envelope, erased.ErasedAt = nil, &at
	m.bundle("envelope erased", bundleIn(erased), "+++++0")
	stated := l.bundle(4, 7, id.DiscloseFull)
	fault := "suspect"
	stated.OperatorStatement = &verify.OperatorStatement{ReverifiedTo: 3, Fault: &fault, KeyClaim: verify.KeyCompromised}
	m.bundle("operator's statement", bundleIn(stated), "++++++")
	cosigned := l.bundle(4, 7, id.DiscloseFull)
	cosigned.Checkpoint += lineOfSignature(m.witness("w.example").Cosign(cosigned.Checkpoint[:strings.Index(cosigned.Checkpoint, "\n\n")+1], start)) + lineOf("stranger.example", 7, make([]byte, 9))
	m.bundle("cosigned, and a stranger's line", bundleIn(cosigned), "++++++")
	later := bundleIn(l.bundle(4, 7, id.DiscloseFull))
	later["bundle"] = strings.Replace(later["bundle"].(string), "{", `{"later":{"a":[1]},`, 1)
	m.bundle("member of another time", later, "++++++")
	upper := bundleIn(l.bundle(4, 7, id.DiscloseFull))
	upper["bundle"] = strings.Replace(upper["bundle"].(string), l.org.String(), strings.ToUpper(l.org.String()), 1)
	m.bundle("organization_id in upper case", upper, "++++++")
	spread := bundleIn(l.bundle(4, 7, id.DiscloseFull))
	text := jsontext.Value(spread["bundle"].(string))
	if err := text.Indent(); err != nil {
		m.t.Fatal(err)
	}
	spread["bundle"] = string(text) + "\n"
	m.bundle("white space between members", spread, "++++++")
	m.spelled(bundleIn(l.bundle(4, 7, id.DiscloseFull)))
	m.shown(l, bundleIn)
}

// documents are texts that are not bundles of version 1.
func (m *maker) documents(input in, b *verify.Bundle) {
	hash := b.EventHash.String()
	m.changes(input, "bundle", input["bundle"].(string), []change{
		{"version 2", `"version":1`, `"version":2`},
		{"version as text", `"version":1`, `"version":"1"`},
		{"version missing", `"version":1,`, ``},
		{"version twice", `"version":1`, `"version":1,"version":1`},
		{"member twice, once escaped", `"version":1`, `"version":1,"v\u0065rsion":1`},
		{"log_key missing", `"log_key"`, `"log_kez"`},
		{"previous_entry missing", `"previous_entry"`, `"previous_entrx"`},
		{"origin null", `"origin":"` + string(b.Origin) + `"`, `"origin":null`},
		{"event_hash in upper case", hash, strings.ToUpper(hash)},
		{"event_hash of 31 bytes", hash, hash[2:]},
		{"event_hash of 33 bytes", hash, hash + "00"},
		{"log_index as text", `"log_index":4`, `"log_index":"4"`},
		{"log_index negative", `"log_index":4`, `"log_index":-4`},
		{"log_index not whole", `"log_index":4`, `"log_index":4.5`},
		{"log_index with a leading zero", `"log_index":4`, `"log_index":04`},
		{"sequence_num beyond doubles", `"sequence_num":5`, `"sequence_num":9007199254740993`},
		{"disclosure of another word", `"disclosure":"full"`, `"disclosure":"all"`},
		{"inclusion null", `"inclusion":{`, `"inclusion":null,"was":{`},
		{"inclusion with a member more", `"inclusion":{`, `"inclusion":{"more":1,`},
		{"inclusion without hashes", `"hashes"`, `"hashez"`},
		{"hashes null", `"hashes":[`, `"hashes":null,"was":[`},
		{"lone surrogate", `"organization_slug":"org"`, `"organization_slug":"\ud800"`},
		{"byte order mark", `{`, "\ufeff{"},
		{"log_index of 2^53", `"log_index":4`, `"log_index":9007199254740992`},
		{"tree_size of 2^53", `"tree_size":7`, `"tree_size":9007199254740992`},
		{"hash null in the inclusion", `"hashes":[`, `"hashes":[null,`},
		{"organization_id without hyphens", b.OrganizationID.String(), strings.ReplaceAll(b.OrganizationID.String(), "-", "")},
		{"record is an object", `"record":"`, `"record":{},"was":"`},
		{"erased_at of seconds", `{`, `{"erased_at":"2026-11-20T12:00:00Z",`},
		{"erased_at of a day that there is not", `{`, `{"erased_at":"2026-02-30T12:00:00.000Z",`},
		{"65 levels", `{`, `{"later":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `,`},
		{"number beyond doubles in a member of another time", `{`, `{"later":9007199254740993,`},
		{"previous_inclusion is a list", `"previous_inclusion":{`, `"previous_inclusion":[],"was":{`},
	})
	text := input["bundle"].(string)
	m.refuse("text behind", input.with("bundle", text+"x"))
	m.refuse("a second bundle behind", input.with("bundle", text+text))
	m.refuse("cut off", input.with("bundle", text[:len(text)/2]))
	m.refuse("empty", input.with("bundle", ""))
	m.refuse("list", input.with("bundle", "["+text+"]"))
	m.refuse("not UTF-8", input.with("bundle", strings.Replace(text, `"org"`, "\"o\xffg\"", 1)))
}

// bent are bundles that were changed after they were issued.
func (m *maker) bent(l *ledger, bundleIn func(*verify.Bundle) in, good func() *verify.Bundle) {
	other := newLedger(m, 2, forgery{})
	bend := func(name, signs string, f func(b *verify.Bundle)) {
		b := good()
		f(b)
		m.bundle(name, bundleIn(b), signs)
	}
	older := l.bundle(4, 6, id.DiscloseFull)
	bend("inclusion of a smaller tree", "-+++++", func(b *verify.Bundle) { b.Inclusion = older.Inclusion })
	bend("path of a smaller tree", "-+++++", func(b *verify.Bundle) { b.Inclusion.Hashes = older.Inclusion.Hashes })
	bend("previous inclusion of a smaller tree", "++-+++", func(b *verify.Bundle) { b.PreviousInclusion = older.PreviousInclusion })
	bend("checkpoint of a smaller tree", "-+-+++", func(b *verify.Bundle) { b.Checkpoint = older.Checkpoint })
	bend("everything of a smaller tree", "++++++", func(b *verify.Bundle) { *b = *older })
	bend("hash more in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.Hashes = append(b.Inclusion.Hashes, id.Hash{}) })
	bend("hash less in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.Hashes = b.Inclusion.Hashes[1:] })
	bend("no hashes in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.Hashes = []id.Hash{} })
	bend("another root in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.RootHash = flipped(b.Inclusion.RootHash) })
	bend("another size in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.TreeSize = 6 })
	bend("another size, for which the path is as long, in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.TreeSize = 8 })
	bend("another size, for which the path is as long, in the previous inclusion", "++-+++", func(b *verify.Bundle) { b.PreviousInclusion.TreeSize = 8 })
	bend("another index in the inclusion", "-+++++", func(b *verify.Bundle) { b.Inclusion.LogIndex = 3 })
	bend("inclusion of the entry before", "-+++++", func(b *verify.Bundle) { b.Inclusion = *b.PreviousInclusion })
	bend("log_index of another entry", "-+-+++", func(b *verify.Bundle) { b.LogIndex = 3 })
	bend("log_index and inclusion of another entry", "-+-+++", func(b *verify.Bundle) { b.LogIndex, b.Inclusion.LogIndex = 5, 5 })
	bend("log_index of the size", "-+-+++", func(b *verify.Bundle) { b.LogIndex, b.Inclusion.LogIndex = 7, 7 })
	bend("sequence_num one more", "-++-++", func(b *verify.Bundle) { b.SequenceNum++ })
	bend("event_hash of the entry before", "-+++++", func(b *verify.Bundle) { b.EventHash = l.leaves(7)[3] })
	bend("entry with a space", "-+--++", func(b *verify.Bundle) { b.Entry = strings.Replace(b.Entry, ":", ": ", 1) })
	bend("entry of the event before", "-+--++", func(b *verify.Bundle) { b.Entry = *b.PreviousEntry })
	bend("no previous entry", "++-+++", func(b *verify.Bundle) { b.PreviousEntry = nil })
	bend("no previous inclusion", "++-+++", func(b *verify.Bundle) { b.PreviousInclusion = nil })
	bend("previous entry is the entry", "++-+++", func(b *verify.Bundle) { b.PreviousEntry, b.PreviousInclusion = &b.Entry, &b.Inclusion })
	bend("previous entry of another log", "++-+++", func(b *verify.Bundle) {
		o := other.bundle(4, 7, id.DiscloseFull)
		b.PreviousEntry, b.PreviousInclusion = o.PreviousEntry, o.PreviousInclusion
	})
	bend("previous entry with a line end", "++-+++", func(b *verify.Bundle) { text := *b.PreviousEntry + "\n"; b.PreviousEntry = &text })
	bend("previous inclusion of another index", "++-+++", func(b *verify.Bundle) { b.PreviousInclusion.LogIndex = 4 })
	bend("first entry with one before it", "++-+++", func(b *verify.Bundle) {
		before := l.bundle(1, 7, id.DiscloseFull)
		*b = *l.bundle(0, 7, id.DiscloseFull)
		b.PreviousEntry, b.PreviousInclusion = before.PreviousEntry, before.PreviousInclusion
	})
	bend("origin of another log", "+-+-++", func(b *verify.Bundle) { b.Origin = other.origin })
	bend("event_id of another event", "+++-++", func(b *verify.Bundle) { b.EventID = "evt_3" })
	bend("organization_id of another organization", "+++-++", func(b *verify.Bundle) { b.OrganizationID = other.org })
	bend("record missing though promised", "+++-00", func(b *verify.Bundle) { b.Record, b.Envelope, b.Disclosure = nil, nil, id.DiscloseRecord })
	bend("envelope missing though promised", "+++++-", func(b *verify.Bundle) { b.Envelope = nil })
	bend("record of another event", "+++-+-", func(b *verify.Bundle) { b.Record = l.bundle(3, 7, id.DiscloseFull).Record })
	bend("record with a space", "+++-00", func(b *verify.Bundle) {
		text := strings.Replace(*b.Record, ":", ": ", 1)
		b.Record = &text
		b.Envelope = nil
		b.Disclosure = id.DiscloseRecord
	})
	bend("effective decision in the record", "+++-++", func(b *verify.Bundle) {
		text := strings.Replace(*b.Record, `"effective":"allow"`, `"effective":"deny"`, 1)
		b.Record = &text
	})
	bend("signature in the record", "+++--+", func(b *verify.Bundle) {
		text := strings.Replace(*b.Record, `"sig_value_b64":"`, `"sig_value_b64":"AAAA`, 1)
		at := strings.Index(text, `"sig_value_b64":"`) + len(`"sig_value_b64":"`)
		text = text[:at+4] + text[at+8:]
		b.Record = &text
	})
	bend("envelope of another event", "+++++-", func(b *verify.Bundle) { b.Envelope = l.bundle(3, 7, id.DiscloseFull).Envelope })
	bend("payload in the envelope", "+++++-", func(b *verify.Bundle) { text := strings.Replace(*b.Envelope, `"n":4`, `"n":5`, 1); b.Envelope = &text })
	bend("envelope with a space", "+++++-", func(b *verify.Bundle) { text := strings.Replace(*b.Envelope, ":", ": ", 1); b.Envelope = &text })
	bend("envelope with a line end behind", "+++++-", func(b *verify.Bundle) { text := *b.Envelope + "\n"; b.Envelope = &text })
	bend("number spelled otherwise in the envelope", "+++++-", func(b *verify.Bundle) { text := strings.Replace(*b.Envelope, `1e-7`, `1E-7`, 1); b.Envelope = &text })
	bend("members exchanged in the envelope", "+++++-", func(b *verify.Bundle) {
		text := strings.Replace(*b.Envelope, `"action_kind":"tool_call","actor_principal":"svc"`, `"actor_principal":"svc","action_kind":"tool_call"`, 1)
		b.Envelope = &text
	})
	bend("envelope with a member twice", "+++++-", func(b *verify.Bundle) {
		text := strings.Replace(*b.Envelope, `"salt"`, `"salt":"x","salt"`, 1)
		b.Envelope = &text
	})
}
