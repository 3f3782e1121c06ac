package vectors

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// A tree by the definitions of RFC 6962, section 2.1.

func treeRoot(leaves []id.Hash) id.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	return tlog.NodeHash(treeRoot(leaves[:k]), treeRoot(leaves[k:]))
}

// split returns the largest power of two below n.
func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

func treePath(m int, leaves []id.Hash) []id.Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if m < k {
		return append(treePath(m, leaves[:k]), treeRoot(leaves[k:]))
	}
	return append(treePath(m-k, leaves[k:]), treeRoot(leaves[:k]))
}

func treeProof(m int, leaves []id.Hash, whole bool) []id.Hash {
	n := len(leaves)
	if m == n {
		if whole {
			return nil
		}
		return []id.Hash{treeRoot(leaves)}
	}
	k := split(n)
	if m <= k {
		return append(treeProof(m, leaves[:k], whole), treeRoot(leaves[k:]))
	}
	return append(treeProof(m-k, leaves[k:], false), treeRoot(leaves[:k]))
}

func someLeaves(n int) []id.Hash {
	leaves := make([]id.Hash, n)
	for i := range leaves {
		leaves[i] = tlog.LeafHash(fmt.Appendf(nil, "leaf %d", i))
	}
	return leaves
}

func texts(hashes []id.Hash) []any {
	all := []any{}
	for _, h := range hashes {
		all = append(all, h.String())
	}
	return all
}

func flipped(h id.Hash) id.Hash { h[31] ^= 1; return h }

func inclusions(m *maker) {
	leaves := someLeaves(70)
	proofIn := func(index, size int) in {
		return in{
			"index": fmt.Sprint(index), "size": fmt.Sprint(size), "leaf": leaves[index].String(),
			"root": treeRoot(leaves[:size]).String(), "hashes": texts(treePath(index, leaves[:size])),
		}
	}
	for _, c := range [][2]int{{0, 1}, {0, 2}, {1, 2}, {2, 3}, {0, 7}, {3, 7}, {6, 7}, {7, 8}, {63, 64}, {64, 65}, {0, 70}, {37, 70}, {69, 70}} {
		m.accept(fmt.Sprintf("leaf %d of %d", c[0], c[1]), proofIn(c[0], c[1]), nil)
	}
	good, path := proofIn(3, 7), treePath(3, leaves[:7])
	m.proofChanges(good, path)
	m.refuse("leaf of another index", good.with("leaf", leaves[2].String()))
	m.refuse("index one less", good.with("index", "2"))
	m.refuse("index one more", good.with("index", "4"))
	m.refuse("index of the size", good.with("index", "7"))
	m.refuse("index beyond the size", good.with("index", "8"))
	m.refuse("size of half the tree", good.with("size", "4"))
	m.refuse("size 0", in{"index": "0", "size": "0", "leaf": leaves[0].String(), "root": leaves[0].String(), "hashes": []any{}})
	m.refuse("negative index", good.with("index", "-1"))
	m.refuse("size 2^63", in{"index": "0", "size": "9223372036854775808", "leaf": leaves[0].String(), "root": foldLeft(leaves[0], 63).String(), "hashes": texts(slices.Repeat([]id.Hash{leaves[0]}, 63))})
	m.refuse("size 2^64", good.with("size", "18446744073709551616"))
	m.refuse("leaf and root exchanged", good.with("leaf", good["root"]).with("root", good["leaf"]))
	m.refuse("the root's own child for a leaf", in{"index": "0", "size": "2", "leaf": treeRoot(leaves[:4]).String(), "root": treeRoot(leaves[:7]).String(), "hashes": texts([]id.Hash{treeRoot(leaves[4:7]), leaves[0]})})
	m.refuse("leaf in upper-case hex", good.with("leaf", strings.ToUpper(leaves[3].String())))
	m.refuse("hash for a tree of one", proofIn(0, 1).with("hashes", texts(leaves[:1])))
	m.refuse("another root for a tree of one", proofIn(0, 1).with("root", leaves[1].String()))
}

// foldLeft returns the root over a leaf beside itself, n times.
func foldLeft(h id.Hash, n int) id.Hash {
	leaf := h
	for range n {
		h = tlog.NodeHash(h, leaf)
	}
	return h
}

// proofChanges adds changes of the hashes of a proof of 3 or more.
func (m *maker) proofChanges(good in, path []id.Hash) {
	change := func(name string, hashes []id.Hash) { m.refuse(name, good.with("hashes", texts(hashes))) }
	change("no hashes", nil)
	change("first hash missing", path[1:])
	change("last hash missing", path[:len(path)-1])
	change("hash added in front", append([]id.Hash{path[0]}, path...))
	change("hash added behind", append(slices.Clone(path), path[0]))
	change("zero hash added behind", append(slices.Clone(path), id.Hash{}))
	change("hashes in reverse", reversed(path))
	change("first hash changed", append([]id.Hash{flipped(path[0])}, path[1:]...))
	change("last hash changed", append(slices.Clone(path[:len(path)-1]), flipped(path[len(path)-1])))
	change("64 hashes more", append(slices.Clone(path), make([]id.Hash, 64)...))
	short, long := texts(path), texts(path)
	short[0], long[0] = short[0].(string)[:62], long[0].(string)+"00"
	m.refuse("hash of 31 bytes", good.with("hashes", short))
	m.refuse("hash of 33 bytes", good.with("hashes", long))
	upper := texts(path)
	upper[0] = strings.ToUpper(upper[0].(string))
	m.refuse("hash in upper-case hex", good.with("hashes", upper))
	joined := append([]any{short[0].(string) + long[0].(string)[62:64] + short[1].(string)}, texts(path)[2:]...)
	m.refuse("two hashes in one", good.with("hashes", joined))
}

func reversed(path []id.Hash) []id.Hash {
	path = slices.Clone(path)
	slices.Reverse(path)
	return path
}

func consistencies(m *maker) {
	leaves := someLeaves(70)
	proofIn := func(from, to int) in {
		var hashes []id.Hash
		if from > 0 {
			hashes = treeProof(from, leaves[:to], true)
		}
		return in{
			"from": fmt.Sprint(from), "to": fmt.Sprint(to), "from_root": treeRoot(leaves[:from]).String(),
			"to_root": treeRoot(leaves[:to]).String(), "hashes": texts(hashes),
		}
	}
	for _, c := range [][2]int{{0, 0}, {0, 1}, {0, 7}, {1, 1}, {1, 2}, {3, 7}, {4, 7}, {4, 8}, {6, 7}, {7, 7}, {7, 8}, {64, 65}, {64, 70}, {63, 70}, {69, 70}, {70, 70}} {
		m.accept(fmt.Sprintf("%d to %d", c[0], c[1]), proofIn(c[0], c[1]), nil)
	}
	good := proofIn(3, 7)
	m.proofChanges(good, treeProof(3, leaves[:7], true))
	other := someLeaves(8)
	other[1] = flipped(other[1])
	m.refuse("another tree before", good.with("from_root", treeRoot(other[:3]).String()))
	m.refuse("another tree after", good.with("to_root", treeRoot(other[:7]).String()))
	m.refuse("roots exchanged", good.with("from_root", good["to_root"]).with("to_root", good["from_root"]))
	m.refuse("from one less", good.with("from", "2"))
	m.refuse("from one more", good.with("from", "4"))
	m.refuse("to of half the tree", good.with("to", "4"))
	m.refuse("from above to", proofIn(7, 7).with("from", "8"))
	m.refuse("negative from", good.with("from", "-3"))
	m.refuse("to 2^63", proofIn(0, 7).with("to", "9223372036854775808"))
	m.refuse("to 2^64", proofIn(0, 7).with("to", "18446744073709551616"))
	m.refuse("from 0 with the root of leaves", proofIn(0, 7).with("from_root", treeRoot(leaves[:3]).String()))
	m.refuse("from 0 with a root of zeros", proofIn(0, 7).with("from_root", id.Hash{}.String()))
	m.refuse("from 0 with a hash", proofIn(0, 7).with("hashes", texts(leaves[:1])))
	m.refuse("from 0 with the root of 7 as a hash", proofIn(0, 7).with("hashes", texts([]id.Hash{treeRoot(leaves[:7])})))
	m.refuse("from 0 to 0 with another root", proofIn(0, 0).with("to_root", leaves[0].String()))
	m.refuse("equal sizes, another root", proofIn(7, 7).with("to_root", treeRoot(other[:7]).String()))
	m.refuse("equal sizes with a hash", proofIn(7, 7).with("hashes", texts(leaves[:1])))
	m.refuse("from a perfect tree, whose root stands in the proof", proofIn(4, 7).with("hashes", texts(append([]id.Hash{treeRoot(leaves[:4])}, treeProof(4, leaves[:7], true)...))))
	m.refuse("empty proof between sizes", proofIn(4, 8).with("hashes", []any{}))
}

func tlogProofs(m *maker) {
	var entries []string
	var leaves []id.Hash
	for i := range 7 {
		entry := event.Entry{Prev: tlog.LeafHash([]byte{byte(i)}), Record: tlog.LeafHash(nil), Seq: uint64(i) + 1}
		entries = append(entries, string(entry.Text()))
		leaves = append(leaves, tlog.LeafHash([]byte(entries[i])))
	}
	vkey := m.signer(logName).Verifier().String()
	make := func(index, size int, extra string) string {
		root := treeRoot(leaves[:size])
		note := m.signText(logName, fmt.Sprintf("%s\n%d\n%s\n", logName, size, b64(root[:])))
		return string(tlog.Proof{Extra: []byte(extra), Index: id.Index(index), Hashes: treePath(index, leaves[:size]), Checkpoint: []byte(note)}.Text())
	}
	proofIn := func(text string, index int) in { return in{"proof": text, "entry": entries[index], "key": vkey} }
	expect := func(index, size int) map[string]any {
		return map[string]any{"index": fmt.Sprint(index), "size": fmt.Sprint(size)}
	}
	for _, c := range [][2]int{{0, 1}, {0, 2}, {3, 7}, {6, 7}} {
		m.accept(fmt.Sprintf("entry %d of %d", c[0], c[1]), proofIn(make(c[0], c[1], ""), c[0]), expect(c[0], c[1]))
	}
	m.accept("with extra data", proofIn(make(3, 7, "extra"), 3), expect(3, 7))
	w := m.witness("w.example")
	cosigned := make(3, 7, "")
	body := cosigned[strings.Index(cosigned, "\n\n")+2:]
	m.accept("cosigned", proofIn(cosigned+lineOfSignature(w.Cosign(body[:strings.Index(body, "\n\n")+1], 1_795_204_800_000)), 3), expect(3, 7))
	good := proofIn(make(3, 7, "extra"), 3)
	text := good["proof"].(string)
	first := strings.Split(text, "\n")[3]
	m.changes(good, "proof", text, []change{
		{"version 2", "@v1", "@v2"},
		{"space behind the header", "@v1\n", "@v1 \n"},
		{"carriage return behind the header", "@v1\n", "@v1\r\n"},
		{"empty line behind the header", "@v1\n", "@v1\n\n"},
		{"line before", "c2sp", "\nc2sp"},
		{"byte order mark", "c2sp", "\ufeffc2sp"},
		{"empty extra line", "extra ZXh0cmE=", "extra "},
		{"extra without a space", "extra ZXh0cmE=", "extraZXh0cmE="},
		{"extra without padding", "ZXh0cmE=", "ZXh0cmE"},
		{"extra with bits in the padding", "ZXh0cmE=", "ZXh0cmF="},
		{"extra twice", "extra ZXh0cmE=\n", "extra ZXh0cmE=\nextra ZXh0cmE=\n"},
		{"extra behind the index", "extra ZXh0cmE=\nindex 3\n", "index 3\nextra ZXh0cmE=\n"},
		{"no index", "index 3\n", ""},
		{"index without a number", "index 3", "index "},
		{"index with a leading zero", "index 3", "index 03"},
		{"index with a plus", "index 3", "index +3"},
		{"negative index", "index 3", "index -3"},
		{"index with two spaces", "index 3", "index  3"},
		{"index with a space behind", "index 3", "index 3 "},
		{"index with a carriage return", "index 3", "index 3\r"},
		{"index in hex", "index 3", "index 0x3"},
		{"another index", "index 3", "index 2"},
		{"index of the size", "index 3", "index 7"},
		{"index 2^64 more", "index 3", "index 18446744073709551619"},
		{"hash cut", first, first[:40]},
		{"hash of 31 bytes", first, first[:42] + "=="},
		{"hash with bits in the padding", first, paddingBits(first)},
		{"hash with a space before", first, " " + first},
		{"hash with a space behind", first, first + " "},
		{"hash with a carriage return", first, first + "\r"},
		{"hash missing", first + "\n", ""},
		{"hash twice", first, first + "\n" + first},
		{"64 hashes", first, strings.TrimSuffix(strings.Repeat(first+"\n", 64), "\n")},
		{"hash changed", first[:4], "AAAA"},
		{"no empty line", "\n\n" + logName, "\n" + logName},
		{"two empty lines", "\n\n" + logName, "\n\n\n" + logName},
		{"another size", "\n7\n", "\n8\n"},
		{"size with a leading zero", "\n7\n", "\n07\n"},
		{"extension line", "\n7\n", "\n7\nx\n"},
		{"dash of the signature", "—", "-"},
	})
	m.refuse("empty", good.with("proof", ""))
	m.refuse("cut behind the hashes", good.with("proof", text[:strings.Index(text, "\n\n")+1]))
	m.refuse("no checkpoint", good.with("proof", text[:strings.Index(text, "\n\n")+2]))
	m.refuse("no line end at the end", good.with("proof", strings.TrimSuffix(text, "\n")))
	m.refuse("line end behind", good.with("proof", text+"\n"))
	m.refuse("a line behind", good.with("proof", text+"x\n"))
	m.refuse("carriage returns", good.with("proof", strings.ReplaceAll(text, "\n", "\r\n")))
	m.refuse("another entry", good.with("entry", entries[2]))
	m.refuse("entry with a line end", good.with("entry", entries[3]+"\n"))
	m.refuse("key of another log", good.with("key", m.signer("log.example/o/other").Verifier().String()))
	m.unknown(m.signer(logName).Verifier().String())
	m.refuse("another key of the name", good.with("key", vkeyOf(m, logName, "another")))
	m.unknown(m.signer(logName).Verifier().String())
	m.refuse("another key of the name, and another entry", good.with("key", vkeyOf(m, logName, "another")).with("entry", entries[2]))
	older := make(3, 6, "")
	m.refuse("hashes of a smaller tree", good.with("proof", older[:strings.Index(older, "\n\n")]+text[strings.Index(text, "\n\n"):]))
}
