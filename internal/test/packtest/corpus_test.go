package packtest_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/internal/test/vectors"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

var update = flag.Bool("update", false, "write testdata/packs")

const corpusFile = "../../../testdata/packs/evidence-pack.json"

// corpus returns the vectors: the samples, those with one change, and damaged ZIP files.
func corpus(t *testing.T) vectors.File {
	l := packtest.NewSampleLog(t)
	f := vectors.File{Kind: "evidence-pack", About: "Evidence packs with the log's pinned key (docs/spec/evidence-pack.md)."}
	add := func(name string, b []byte, verdict string, expect map[string]any) {
		f.Vectors = append(f.Vectors, vectors.Vector{Name: name, Verdict: verdict, Expect: expect,
			Input: map[string]any{"pack_b64": base64.StdEncoding.EncodeToString(b), "key": l.Key().String()}})
	}
	samples := packtest.Samples(t, l)
	facts := func(s packtest.Sample, tools ...tlog.VerifierKey) map[string]any {
		count := func(n uint64) string { return strconv.FormatUint(n, 10) }
		expect := map[string]any{"begin": count(uint64(s.Begin)), "end": count(uint64(s.End)), "shown": count(s.Shown),
			"withheld": count(s.Withheld), "erased": count(s.Erased)}
		b := s.Parts.Bytes(t)
		r, err := pack.Check(bytes.NewReader(b), int64(len(b)), pack.Options{ToolKeys: tools})
		if err != nil {
			t.Fatal(err)
		}
		if r.VotesSigned > 0 {
			expect["vote_lines"] = r.VoteLines()
		}
		expect["act_lines"] = r.ActLines()
		if len(r.Coverage) > 0 {
			lines := make([]string, len(r.Coverage))
			for i := range r.Coverage {
				lines[i] = r.Coverage[i].String()
			}
			expect["coverage_lines"] = lines
		}
		return expect
	}
	refuse := func(prefix string, all []packtest.Wrong) {
		for _, w := range all {
			var expect map[string]any
			if w.Unreadable {
				expect = map[string]any{"cant_tell": true}
			}
			add(prefix+w.Name, w.Bytes, vectors.Refuse, expect)
		}
	}
	for _, s := range samples {
		add(s.Name, s.Parts.Bytes(t), vectors.Accept, facts(s))
	}
	refuse("", packtest.Changed(t, l))
	right, wrong := packtest.Damaged(samples[5].Parts.Bytes(t))
	for _, w := range right {
		add("ZIP: "+w.Name, w.Bytes, vectors.Accept, facts(samples[5]))
	}
	refuse("ZIP: ", wrong)
	right, wrong = packtest.Packed(t, packtest.Samples(t, l)[7].Parts)
	for _, w := range right {
		add(w.Name, w.Bytes, vectors.Accept, facts(samples[7]))
	}
	refuse("", wrong)
	for _, s := range packtest.VoteSamples(t) {
		add(s.Name, s.Parts.Bytes(t), vectors.Accept, facts(s))
	}
	refuse("", packtest.WrongVotes(t))
	for _, s := range packtest.ActSamples(t) {
		add(s.Name, packtest.Compressed(t, s.Parts), vectors.Accept, facts(s))
	}
	refuse("", packtest.WrongActs(t))
	for _, s := range packtest.CoverageSamples(t) {
		add(s.Name, packtest.Compressed(t, s.Parts), vectors.Accept, facts(s))
	}
	refuse("", packtest.WrongCoverage(t))
	withTools := func(keys []tlog.VerifierKey) {
		if len(keys) > 0 {
			f.Vectors[len(f.Vectors)-1].Input["tool_keys"] = packtest.Texts(keys)
		}
	}
	for _, s := range packtest.ReceiptSamples(t) {
		add(s.Name, packtest.Compressed(t, s.Parts), vectors.Accept, facts(s.Sample, s.Tools...))
		withTools(s.Tools)
	}
	for _, s := range packtest.WrongReceipts(t) {
		add(s.Name, packtest.Compressed(t, s.Parts), vectors.Refuse, nil)
		withTools(s.Tools)
	}
	for _, s := range packtest.SubjectSamples(t) {
		add(s.Name, packtest.Compressed(t, s.Parts), vectors.Accept, facts(s))
	}
	refuse("", packtest.WrongSubjects(t))
	add("another log's key", packtest.Samples(t, l)[5].Parts.Bytes(t), vectors.Refuse, nil)
	f.Vectors[len(f.Vectors)-1].Input["key"] = packtest.OtherKey(t).String()
	return f
}

// The published packs are the generated ones, and all names differ.
func TestCorpus(t *testing.T) {
	f := corpus(t)
	names := map[string]bool{}
	for _, v := range f.Vectors {
		if names[v.Name] {
			t.Errorf("%s twice", v.Name)
		}
		names[v.Name] = true
	}
	text, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(corpusFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(corpusFile); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%s is not what is made here (-update writes it): %v", corpusFile, err)
	}
}
