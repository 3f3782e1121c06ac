package vectors

import (
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// listedAs is a log as a listing has it, with members that can be changed.
func (l *ledger) listedAs(size int) map[string]any {
	root := treeRoot(l.leaves(size))
	return map[string]any{"origin": string(l.origin), "tree_size": size, "root_hash": root.String(), "log_key": l.vkey()}
}

// listing returns the payload of a directory's event.
func listing(logs ...map[string]any) map[string]any {
	list := []any{}
	for _, l := range logs {
		list = append(list, l)
	}
	return map[string]any{"checkpoints": list}
}

// listed makes an event a directory's own, with a payload.
func listed(payload map[string]any) forgery {
	return forgery{
		unsigned: func(e map[string]any) { e["action_kind"], e["payload"] = verify.DirectoryKind, payload },
		record: func(r *event.Record) {
			r.Signer, r.Custody, r.IngestKeyID = event.SignerSystem, event.CustodyServer, ""
		},
	}
}

// second is the basis of the vectors of second proofs: two logs, and the log of a directory, whose event 2 lists them.
type second struct {
	*maker
	log, other, directory *ledger
}

// newSecond returns one whose directory accepted f as its event 2.
func newSecond(m *maker, f func(s second) forgery) second {
	s := second{maker: m, log: newLedger(m, 2, forgery{}), other: newLedger(m, 1, forgery{}), directory: emptyLedger(m, 9)}
	for range 2 {
		s.directory.add(forgery{})
	}
	s.directory.add(f(s))
	s.directory.add(listed(listing(s.other.listedAs(7))))
	return s
}

// honestly lists the first five events of the log, and the other log.
func honestly(s second) forgery { return listed(listing(s.other.listedAs(3), s.log.listedAs(5))) }

// bundle returns event 4 of the log in its tree of 7, and in the tree of the size that the directory has listed.
func (s second) bundle(size int) *verify.Bundle {
	b := s.log.bundle(4, 7, id.DiscloseRecord)
	b.Directory = &verify.Directory{Inclusion: s.log.bundle(4, size, id.DiscloseRecord).Inclusion, Bundle: s.directory.bundle(2, 4, id.DiscloseFull)}
	return b
}

func (s second) input(b *verify.Bundle) in {
	return in{"bundle": s.text(b), "key": s.log.vkey(), "directory_key": s.directory.vkey()}
}

// proof adds the vector of a bundle whose own parts are correct.
func (s second) proof(name string, input in, directory string) {
	s.maker.bundle(name, input, "+++++0"+directory)
}

func secondProofs(m *maker) {
	s := newSecond(m, honestly)
	s.right()
	s.documents()
	s.bent()
	s.inner()
	s.rotated()
	s.cosigned()
	m.forgedListings()
	m.bentListings()
}

// right are valid second proofs, and bundles without one.
func (s second) right() {
	good := s.input(s.bundle(5))
	s.proof("listed with a smaller tree than the checkpoint's", good, "+")
	s.proof("nobody says whose directory it is", in{"bundle": good["bundle"], "key": good["key"]}, "+")
	larger := s.bundle(5)
	small := s.log.bundle(4, 5, id.DiscloseRecord)
	larger.Inclusion, larger.PreviousInclusion, larger.Checkpoint = small.Inclusion, small.PreviousInclusion, small.Checkpoint
	s.proof("listed with the tree of the checkpoint", s.input(larger), "+")
	whole := newSecond(s.maker, func(s second) forgery { return listed(listing(s.log.listedAs(7))) })
	ahead := whole.bundle(7)
	older := whole.log.bundle(4, 6, id.DiscloseRecord)
	ahead.Inclusion, ahead.PreviousInclusion, ahead.Checkpoint = older.Inclusion, older.PreviousInclusion, older.Checkpoint
	s.proof("listed with a larger tree than the checkpoint's", whole.input(ahead), "+")
	stated := s.bundle(5)
	stated.Directory.Bundle.OperatorStatement = &verify.OperatorStatement{ReverifiedTo: 3}
	s.proof("operator's statement in the directory's bundle", s.input(stated), "+")
	later := strings.Replace(good["bundle"].(string), `"bundle":{`, `"bundle":{"later":{"a":[1]},`, 1)
	s.proof("member of another time in the directory's bundle", good.with("bundle", later), "+")
	hidden := s.bundle(5)
	hidden.Record, hidden.Disclosure = nil, id.DiscloseCommitment
	s.maker.bundle("commitment alone", s.input(hidden), "+++000+")
	none := s.bundle(5)
	none.Directory = nil
	absent, null := in{"bundle": s.text(none), "key": s.log.vkey()}, strings.Replace(s.text(none), "{", `{"directory":null,`, 1)
	s.proof("none", absent, "0")
	s.proof("null", absent.with("bundle", null), "0")
	for name, text := range ordered(map[string]string{"none": s.text(none), "null": null}) {
		s.add(Vector{Name: name + ", though the directory is pinned", Input: s.input(none).with("bundle", text), Verdict: Refuse, Expect: verdictsOf("+++++00")})
	}
}

// documents are texts that are not second proofs of version 1.
func (s second) documents() {
	b := s.bundle(5)
	input := s.input(b)
	s.changes(input, "bundle", input["bundle"].(string), []change{
		{"a list", `"directory":{`, `"directory":[],"was":{`},
		{"a text", `"directory":{`, `"directory":"x","was":{`},
		{"a member more", `"directory":{`, `"directory":{"more":1,`},
		{"a member twice", `"directory":{`, `"directory":{"bundle":{},`},
		{"bundle null", `"bundle":{`, `"bundle":null,"was":{`},
		{"bundle of version 2", `"bundle":{"version":1`, `"bundle":{"version":2`},
		{"bundle with a member twice", `"bundle":{`, `"bundle":{"version":1,`},
		{"bundle without its log_key", `"log_key":"` + s.directory.vkey(), `"log_kez":"` + s.directory.vkey()},
		{"inclusion with a member more", `"directory":{"inclusion":{`, `"directory":{"inclusion":{"more":1,`},
		{"inclusion null", `"directory":{"inclusion":{`, `"directory":{"inclusion":null,"was":{`},
	})
	nested := s.bundle(5)
	nested.Directory.Bundle.Directory = s.bundle(5).Directory
	s.refuse("second proof in the directory's bundle", s.input(nested))
}

// bent are second proofs that were changed after they were issued.
func (s second) bent() {
	bend := func(name string, f func(d *verify.Directory)) {
		b := s.bundle(5)
		f(b.Directory)
		s.proof(name, s.input(b), "-")
	}
	bend("inclusion in the checkpoint's tree and not in the one listed", func(d *verify.Directory) { d.Inclusion = s.bundle(7).Directory.Inclusion })
	bend("path of another tree", func(d *verify.Directory) { d.Inclusion.Hashes = s.bundle(6).Directory.Inclusion.Hashes })
	bend("hash more", func(d *verify.Directory) { d.Inclusion.Hashes = append(d.Inclusion.Hashes, id.Hash{}) })
	bend("hash less", func(d *verify.Directory) { d.Inclusion.Hashes = nil })
	bend("another root", func(d *verify.Directory) { d.Inclusion.RootHash = flipped(d.Inclusion.RootHash) })
	bend("another size", func(d *verify.Directory) { d.Inclusion.TreeSize = 6 })
	bend("another index", func(d *verify.Directory) { d.Inclusion.LogIndex = 3 })
	bend("inclusion of another event", func(d *verify.Directory) { d.Inclusion = s.log.bundle(3, 5, id.DiscloseRecord).Inclusion })
	bend("inclusion in a tree of another log", func(d *verify.Directory) { d.Inclusion = s.other.bundle(2, 3, id.DiscloseRecord).Inclusion })
	bend("the event that lists another log alone", func(d *verify.Directory) { d.Bundle = s.directory.bundle(3, 4, id.DiscloseFull) })
	bend("an event that lists nothing", func(d *verify.Directory) { d.Bundle = s.directory.bundle(1, 4, id.DiscloseFull) })
	late := s.bundle(5)
	event := s.log.bundle(5, 7, id.DiscloseRecord)
	event.Directory = late.Directory
	event.Directory.Inclusion.LogIndex = 5
	s.maker.bundle("event behind the tree that is listed", s.input(event), "++++00-")
	s.proof("another directory's key pinned", s.input(s.bundle(5)).with("directory_key", emptyLedger(s.maker, 8).vkey()), "-")
	s.maker.unknown(s.directory.vkey())
	s.proof("the log's key pinned for the directory", s.input(s.bundle(5)).with("directory_key", s.log.vkey()), "-")
	s.maker.unknown(s.directory.vkey())
	s.maker.bundle("the directory's key pinned for the log", s.input(s.bundle(5)).with("key", s.directory.vkey()), "+-+++0+")
	s.maker.unknown(s.log.vkey())
	s.maker.bundle("either key pinned for the other", s.input(s.bundle(5)).with("key", s.directory.vkey()).with("directory_key", s.log.vkey()), "+-+++0-")
	s.maker.unknown(s.log.vkey(), s.directory.vkey())
	s.proof("key of the directory under which it did not sign", s.input(s.bundle(5)).with("directory_key", vkeyOf(s.maker, string(s.directory.origin), "rotated")), "-")
	s.maker.unknown(s.directory.vkey())
}

// inner are second proofs whose bundle of the directory is invalid.
func (s second) inner() {
	bend := func(name string, f func(b *verify.Bundle)) {
		b := s.bundle(5)
		f(b.Directory.Bundle)
		s.proof("directory's bundle: "+name, s.input(b), "-")
	}
	smaller := s.directory.bundle(2, 3, id.DiscloseFull)
	bend("inclusion of a smaller tree", func(b *verify.Bundle) { b.Inclusion = smaller.Inclusion })
	bend("checkpoint of a smaller tree", func(b *verify.Bundle) { b.Checkpoint = smaller.Checkpoint })
	bend("no previous entry", func(b *verify.Bundle) { b.PreviousEntry = nil })
	bend("signed by another key, which it names", func(b *verify.Bundle) {
		b.Checkpoint, b.LogKey = s.directory.note(key(s.t, "rotated"), 4), vkeyOf(s.maker, string(b.Origin), "rotated")
	})
	s.maker.unknown(vkeyOf(s.maker, string(s.directory.origin), "rotated"))
	bend("signed by another key", func(b *verify.Bundle) { b.Checkpoint = s.directory.note(key(s.t, "rotated"), 4) })
	bend("origin of the log", func(b *verify.Bundle) { b.Origin = s.log.origin })
	bend("commitment alone", func(b *verify.Bundle) { b.Record, b.Envelope, b.Disclosure = nil, nil, id.DiscloseCommitment })
	bend("record alone", func(b *verify.Bundle) { b.Envelope, b.Disclosure = nil, id.DiscloseRecord })
	bend("envelope erased", func(b *verify.Bundle) { at := start; b.Envelope, b.ErasedAt = nil, &at })
	bend("record called an agent's", func(b *verify.Bundle) {
		text := strings.Replace(*b.Record, `"signer":"system"`, `"signer":"agent"`, 1)
		b.Record = &text
	})
	bend("tree_size in the envelope", func(b *verify.Bundle) {
		text := strings.Replace(*b.Envelope, `"tree_size":5`, `"tree_size":6`, 1)
		b.Envelope = &text
	})
	bend("signature in the record", func(b *verify.Bundle) {
		text := strings.Replace(*b.Record, `"sig_value_b64":"`, `"sig_value_b64":"AAAA`, 1)
		b.Record = &text
	})
}

// rotated are second proofs under another key of the directory than the pinned one.
func (s second) rotated() {
	name := string(s.directory.origin)
	in := func(to string) in {
		keys := `{"keys":[{"from_size":0,"to_size":` + to + `,"use":"log","vkey":"` + s.directory.vkey() + `"},{"from_size":4,"to_size":null,"use":"log","vkey":"` + vkeyOf(s.maker, name, "rotated") + `"}]}`
		return s.input(s.bundle(5)).with("directory_key", vkeyOf(s.maker, name, "rotated")).with("directory_keys", keys)
	}
	s.proof("retired key of the directory", in("5"), "+")
	s.proof("retired key of smaller trees of the directory", in("4"), "-")
}

// cosigned are second proofs that must have witnesses' cosignatures.
func (s second) cosigned() {
	policy := "log " + s.directory.vkey() + "\n" + s.witnessLine("X1") + s.witnessLine("X2") + "group g 2 X1 X2\nquorum g\n"
	by := func(names ...string) in {
		b := s.bundle(5)
		inner := b.Directory.Bundle
		text := inner.Checkpoint[:strings.Index(inner.Checkpoint, "\n\n")+1]
		for _, name := range names {
			inner.Checkpoint += lineOfSignature(s.witness(name+".example").Cosign(text, start))
		}
		return s.input(b).with("directory_policy", policy)
	}
	add := func(name, verdict string, input in, witnesses ...any) {
		v := Vector{Name: name, Input: input, Verdict: verdict, Expect: verdictsOf("+++++0+")}
		v.Expect["directory_witnessed_by"] = append([]any{}, witnesses...)
		s.add(v)
	}
	add("directory cosigned by its quorum", Accept, by("X1", "X2"), "X1", "X2")
	add("directory cosigned by its quorum and a stranger", Accept, by("Z", "X2", "X1"), "X1", "X2")
	add("no quorum of the directory asked for", Accept, by().with("directory_policy", "log "+s.directory.vkey()+"\n"+s.witnessLine("X1")+"quorum none\n"))
	add("directory cosigned by nobody", Refuse, by())
	add("directory cosigned by too few", Refuse, by("X2"), "X2")
	add("directory cosigned by strangers", Refuse, by("X1", "Z", "Y1"), "X1")
	b := s.bundle(5)
	text := b.Checkpoint[:strings.Index(b.Checkpoint, "\n\n")+1]
	b.Checkpoint += lineOfSignature(s.witness("X1.example").Cosign(text, start)) + lineOfSignature(s.witness("X2.example").Cosign(text, start))
	add("log's checkpoint cosigned and not the directory's", Refuse, s.input(b).with("directory_policy", policy))
	b.Directory.Bundle.Checkpoint += b.Checkpoint[strings.Index(b.Checkpoint, "— X1"):]
	add("cosignatures of the log's checkpoint under the directory's", Refuse, s.input(b).with("directory_policy", policy))
	b.Directory = nil
	s.refuse("none, though the directory's quorum is asked for", in{"bundle": s.text(b), "key": s.log.vkey(), "directory_policy": policy})
}
