package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/internal/test/vectors"
	"github.com/agentledger/agentledger/verify/pack"
)

var (
	differentialInputs = flag.Int("differential-inputs", 60, "number of documents that all verifiers judge")
	differentialSeed   = flag.Uint64("differential-seed", 2026, "seed of the documents")
)

// judgement is the answer of a verifier.
type judgement struct {
	Status   int
	Text     string
	Verdicts []*bool
	Reason   string
}

// judge is a verifier in a process that judges one document after another.
type judge struct {
	name string
	to   io.Writer
	from *bufio.Reader
	full bool // it distinguishes all statuses and prints the report
	kind string
}

func startJudge(t *testing.T, name, kind string, full bool, dir string, command ...string) *judge {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Stderr = dir, os.Stderr
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("%s: %v (it needs what scripts/node and scripts/python install)", name, err)
	}
	t.Cleanup(func() { to.Close(); _ = c.Wait() })
	return &judge{name: name, to: to, from: bufio.NewReader(from), full: full, kind: kind}
}

// document is one input of all verifiers.
type document struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Key  string `json:"key"`
	Keys string `json:"keys"`
	what string
}

func (j *judge) ask(t *testing.T, d document) {
	t.Helper()
	line, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.to.Write(append(line, '\n')); err != nil {
		t.Fatalf("%s: %v", j.name, err)
	}
}

func (j *judge) answer(t *testing.T) (a judgement) {
	t.Helper()
	line, err := j.from.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		t.Fatalf("%s: %v", j.name, err)
	}
	return a
}

// judgeHere returns the judgement of aps verify.
func judgeHere(t *testing.T, d document) (a judgement, unreadable bool) {
	t.Helper()
	args := []string{"verify", d.Path, "--key", d.Key}
	if d.Keys != "" {
		args = append(args, "--keys", d.Keys)
	}
	got := aps(t, "", args...)
	a = judgement{Status: got.status, Text: strings.TrimSuffix(got.out, "\n"), Reason: got.report}
	if d.Kind == "pack" {
		_, a.Text, _ = strings.Cut(a.Text, "\n") // the name of the file
		return a, strings.Contains(a.Reason, pack.ErrContainer.Error())
	}
	var report map[string]any
	if json.Unmarshal([]byte(aps(t, "", append([]string{"--json"}, args...)...).out), &report) == nil {
		for _, name := range []string{"inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok"} {
			var verdict *bool
			if v, ok := report[name].(bool); ok {
				verdict = &v
			}
			a.Verdicts = append(a.Verdicts, verdict)
		}
	}
	return a, false
}

// All verifiers agree on the same documents, which are honest ones with random changes.
func TestVerifiersAgree(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	fromPage := filepath.Join(t.TempDir(), "judgeloop")
	build := exec.Command("go", "build", "-o", fromPage, "./frompage/judgeloop")
	build.Dir = filepath.Join(root, "interop")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	judges := []*judge{
		startJudge(t, "clients/typescript", "", true, root, "node", "--no-warnings", "clients/typescript/test/judgeloop.js"),
		startJudge(t, "clients/python", "", true, root, "clients/python/interpreter", "-B", "clients/python/tests/judgeloop.py"),
		startJudge(t, "interop/frompage", "bundle", false, root, fromPage),
	}
	m := newMutator(t, *differentialSeed)
	statuses := map[string]int{}
	for i := range *differentialInputs {
		d := m.next(t, i)
		for _, j := range judges {
			if j.kind == "" || j.kind == d.Kind {
				j.ask(t, d)
			}
		}
		want, unreadable := judgeHere(t, d)
		statuses[fmt.Sprint(d.Kind, " ", want.Status)]++
		agree := true
		for _, j := range judges {
			if j.kind != "" && j.kind != d.Kind {
				continue
			}
			got := j.answer(t)
			if j.agrees(want, got, unreadable) {
				continue
			}
			agree = false
			t.Errorf("document %d of seed %d, %s:\naps verify: %d: %s%s\n%s: %d: %s %s", i, *differentialSeed, d.what, want.Status,
				want.Reason, want.Text, j.name, got.Status, got.Reason, got.Text)
		}
		if !agree {
			m.keep(t, d, i)
		}
	}
	t.Logf("%v", statuses)
	for _, name := range []string{"bundle 0", "bundle 1", "bundle 2", "pack 0", "pack 1", "pack 2"} {
		if statuses[name] == 0 && *differentialInputs >= 300 {
			t.Errorf("no document has %s", name)
		}
	}
}

// agrees compares two judgements. A verifier that is not full has status 2 only for unreadable containers.
func (j *judge) agrees(want, got judgement, unreadable bool) bool {
	if j.full {
		return want.Status == got.Status && withoutCauses(want.Text) == withoutCauses(got.Text)
	}
	if (want.Status == 0) != (got.Status == 0) || unreadable && got.Status != 2 || got.Status > 2 {
		return false // a pack may have several faults, and this verifier reads all its files first
	}
	return slices.EqualFunc(want.Verdicts, got.Verdicts, func(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }) ||
		got.Verdicts == nil && want.Verdicts == nil
}

// withoutCauses returns a report that names only the step of a failure, because causes differ by language.
func withoutCauses(report string) string {
	lines := strings.Split(report, "\n")
	for i, line := range lines {
		kind, rest, _ := strings.Cut(line, ": ")
		if kind == "wrong" || kind == "can't tell" {
			step, _, _ := strings.Cut(rest, ":")
			lines[i] = kind + ": " + step
		}
	}
	return strings.Join(lines, "\n")
}

// mutator creates documents from honest ones.
type mutator struct {
	*rand.Rand
	dir     string
	bundles []vectors.Vector
	packs   []*packtest.Parts
	key     string
	values  []any // of all honest bundles
}

func newMutator(t *testing.T, seed uint64) *mutator {
	t.Helper()
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, 33)), dir: t.TempDir()}
	f, err := vectors.Read("../..", "bundle")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Vectors {
		var b any
		text := member(t, v, "bundle")
		if v.Verdict == vectors.Accept && json.Unmarshal([]byte(text), &b) == nil {
			m.bundles = append(m.bundles, v)
			walk(b, func(_ map[string]any, _ []any, _ string, _ int, value any) { m.values = append(m.values, value) })
		}
	}
	l := packtest.NewSampleLog(t)
	m.key = l.Key().String()
	for _, s := range slices.Concat(packtest.Samples(t, l), packtest.VoteSamples(t), packtest.CoverageSamples(t)) {
		m.packs = append(m.packs, s.Parts)
	}
	return m
}

// keep copies a document to the folder of artifacts.
func (m *mutator) keep(t *testing.T, d document, i int) {
	t.Helper()
	to := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d", d.Kind, i))
	if info, err := os.Stat(d.Path); err == nil && info.IsDir() {
		_ = os.CopyFS(to, os.DirFS(d.Path))
		return
	}
	text, err := os.ReadFile(d.Path)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

func (m *mutator) next(t *testing.T, i int) document {
	t.Helper()
	if m.IntN(2) == 0 {
		return m.nextBundle(t)
	}
	return m.nextPack(t, i)
}

func (m *mutator) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nextBundle changes a bundle, its text or the list of keys.
func (m *mutator) nextBundle(t *testing.T) document {
	t.Helper()
	v := m.bundles[m.IntN(len(m.bundles))]
	d := document{Kind: "bundle", Key: member(t, v, "key"), what: "bundle " + v.Name}
	text := []byte(member(t, v, "bundle"))
	if m.IntN(2) == 0 {
		text = m.changeText(text)
	} else {
		text = m.changeJSON(text, json.Marshal)
	}
	d.Path = m.write(t, "bundle.json", text)
	if _, has := v.Input["keys"]; has {
		keys := []byte(member(t, v, "keys"))
		if m.IntN(8) == 0 {
			keys = m.changeText(keys)
			// A malformed list is an invalid input, which not every verifier distinguishes.
			if aps(t, "", "verify", d.Path, "--key", d.Key, "--keys", m.write(t, "keys.json", keys)).status == 2 {
				keys = []byte(member(t, v, "keys"))
			}
		}
		d.Keys = m.write(t, "keys.json", keys)
	}
	return d
}

// nextPack changes files of a pack or its container.
func (m *mutator) nextPack(t *testing.T, i int) document {
	t.Helper()
	if m.IntN(3) == 0 {
		d := document{Kind: "pack", Key: m.key}
		bend := func(payload []byte) []byte { return m.changeJSON(payload, canonical) }
		var p *packtest.Parts
		switch m.IntN(3) {
		case 0:
			d.what, p = "the payload of a voter key", packtest.BentVotePack(t, false, bend)
		case 1:
			d.what, p = "the payload of a signed vote", packtest.BentVotePack(t, true, bend)
		default:
			d.what, p = "the payload of a comparison", packtest.BentCoveragePack(t, bend)
		}
		d.Path = m.write(t, "pack.zip", packtest.WriteZIP(t, p.Contents(t)))
		return d
	}
	source := m.packs[m.IntN(len(m.packs))]
	p := &packtest.Parts{Files: slices.Clone(source.Files), Manifest: source.Manifest}
	d := document{Kind: "pack", Key: m.key}
	m.changeFile(p, &d)
	if m.IntN(3) > 0 {
		p.CountLines()
	}
	files := p.Contents(t)
	if m.IntN(15) == 0 { // after the digests were written
		f := &files[m.IntN(len(files))]
		f.Content = string(m.changeBytes([]byte(f.Content)))
		d.what += ", and digests that do not fit"
	}
	switch m.IntN(6) {
	case 0:
		d.what += ", in a folder"
		d.Path = filepath.Join(m.dir, fmt.Sprintf("folder-%d", i))
		for _, f := range files {
			name := filepath.Join(d.Path, f.Name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(f.Content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return d
	case 1:
		d.what += ", packed again"
		right, wrong := packtest.Packed(t, p)
		all := append(right, wrong...)
		w := all[m.IntN(len(all))]
		d.what += ", " + w.Name
		content := w.Bytes
		if m.IntN(4) == 0 {
			d.what += ", damaged"
			content = m.changeBytes(content)
		}
		d.Path = m.write(t, "pack.zip", content)
		return d
	}
	content := packtest.WriteZIP(t, files)
	if m.IntN(15) == 0 {
		d.what += ", a damaged ZIP file"
		content = m.changeBytes(content)
	}
	d.Path = m.write(t, "pack.zip", content)
	return d
}

func (m *mutator) changeFile(p *packtest.Parts, d *document) {
	if m.IntN(12) == 0 {
		d.what = "manifest.json"
		if text, err := p.Manifest.Text(); err == nil {
			p.Text = string(m.changeJSON(text, canonical))
		}
		return
	}
	f := &p.Files[m.IntN(len(p.Files))]
	d.what = f.Name
	switch n := m.IntN(10); {
	case n < 6 && strings.HasSuffix(f.Name, ".ndjson") && f.Content != "":
		lines := strings.Split(strings.TrimSuffix(f.Content, "\n"), "\n")
		k := m.IntN(len(lines))
		switch m.IntN(8) {
		case 0:
			lines = slices.Delete(lines, k, k+1)
		case 1:
			lines = slices.Insert(lines, k, lines[m.IntN(len(lines))])
		case 2:
			m.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		default:
			lines[k] = string(m.changeJSON([]byte(lines[k]), canonical))
		}
		f.Content = strings.Join(lines, "\n") + "\n"
	case n < 6 && strings.HasSuffix(f.Name, ".json"):
		f.Content = string(m.changeJSON([]byte(f.Content), canonical))
	case n < 8:
		f.Content = string(m.changeText([]byte(f.Content)))
	default:
		f.Content = string(m.changeBytes([]byte(f.Content)))
	}
}

// canonical writes a value as packs do, or as JSON if it has no canonical form.
func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if again, _, err := jcs.ParseObject(nil, text, jcs.MaxDepth); err == nil {
		return again, nil
	}
	return text, nil
}

// walk visits all values below v, each with the object or list that contains it.
func walk(v any, visit func(object map[string]any, list []any, name string, at int, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			visit(v, nil, name, 0, v[name])
			walk(v[name], visit)
		}
	case []any:
		for i := range v {
			visit(nil, v, "", i, v[i])
			walk(v[i], visit)
		}
	}
}

var oddValues = []any{nil, true, false, 0, -1, 1, json.Number("1.0"), json.Number("1e300"), json.Number("9007199254740992"),
	json.Number("9223372036854775808"), json.Number("-0"), 1.5, "", " ", "0", "null", "\x00", "é", "\ufeff", []any{}, map[string]any{}, []any{nil},
	map[string]any{"a": 1}, strings.Repeat("A", 300)}

// changeJSON changes one or two values of a document.
func (m *mutator) changeJSON(text []byte, write func(any) ([]byte, error)) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return m.changeText(text)
	}
	for range 1 + m.IntN(2) {
		var places []func()
		walk(v, func(object map[string]any, list []any, name string, at int, value any) {
			set := func(v any) {
				if object != nil {
					object[name] = v
				} else {
					list[at] = v
				}
			}
			places = append(places, func() {
				switch n := m.IntN(10); {
				case n == 0 && object != nil:
					delete(object, name)
				case n == 1 && object != nil:
					object["zz"] = m.odd()
				case n == 2:
					set(m.odd())
				case n == 3:
					set(m.values[m.IntN(len(m.values))])
				default:
					set(m.changeValue(value))
				}
			})
		})
		if len(places) > 0 {
			places[m.IntN(len(places))]()
		}
	}
	again, err := write(v)
	if err != nil {
		return text
	}
	if m.IntN(30) == 0 {
		return append([]byte(" "), again...)
	}
	return again
}

func (m *mutator) odd() any { return oddValues[m.IntN(len(oddValues))] }

func (m *mutator) changeValue(v any) any {
	switch v := v.(type) {
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && m.IntN(2) == 0 && json.Unmarshal([]byte(v), &inner) == nil {
			return string(m.changeJSON([]byte(v), canonical))
		}
		return m.changeString(v)
	case json.Number:
		return json.Number([]string{string(v) + ".0", string(v) + "0", "1" + string(v), string(v) + "e0", "-" + string(v), "0"}[m.IntN(6)])
	case []any:
		switch l := slices.Clone(v); {
		case len(l) == 0:
			return []any{m.odd()}
		case m.IntN(3) == 0:
			return slices.Delete(l, 0, 1)
		case m.IntN(2) == 0:
			return append(l, l[len(l)-1])
		default:
			m.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
			return l
		}
	case bool:
		return !v
	}
	return m.odd()
}

func (m *mutator) changeString(s string) string {
	at := m.IntN(len(s) + 1)
	lines := strings.Split(s, "\n")
	switch m.IntN(16) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	case 2:
		return s + "\n"
	case 3:
		return " " + s
	case 4:
		return strings.ReplaceAll(s, "\n", "\r\n")
	case 5:
		return strings.ReplaceAll(s, "=", "")
	case 6:
		return strings.NewReplacer("+", "-", "/", "_").Replace(s)
	case 7:
		return "\ufeff" + s
	case 8:
		m.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return strings.Join(lines, "\n")
	case 9:
		return strings.Join(slices.Insert(lines, m.IntN(len(lines)), []string{"", "x", "\u2014 a AAAA", lines[0]}[m.IntN(4)]), "\n")
	case 10:
		return strings.ReplaceAll(s, "\u2014", "-")
	case 11:
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil && len(raw) > 0 {
			raw[m.IntN(len(raw))] ^= 1 << m.IntN(8)
			return base64.StdEncoding.EncodeToString(raw)
		}
	case 12:
		if v, ok := m.values[m.IntN(len(m.values))].(string); ok {
			return v
		}
	case 13:
		return s[:at] + []string{"0", "A", "z", " ", "\u0085", "\u2028", "\u0660", "é"}[m.IntN(8)] + s[at:]
	}
	if at < len(s) {
		return strings.ToValidUTF8(s[:at]+s[at+1:], "")
	}
	return s + s
}

// changeText changes the spelling of a document, or its bytes.
func (m *mutator) changeText(b []byte) []byte {
	s := string(b)
	at := m.IntN(len(s) + 1)
	member := strings.Index(s[at:], `":`)
	switch n := m.IntN(12); {
	case n == 0:
		return []byte([]string{"\ufeff", " ", "\n", "\v", "\u00a0", "[", "\x00"}[m.IntN(7)] + s)
	case n == 1:
		return []byte(s + []string{"\ufeff", " ", "\n", "\v", "{}", "//x", "\x00", ","}[m.IntN(8)])
	case n == 2:
		return []byte(strings.ReplaceAll(s, `":`, `" : `))
	case n == 3:
		return []byte(strings.ReplaceAll(s, "/", `\/`))
	case n == 4 && member >= 0:
		at += member
		return []byte(s[:at] + s[at:at+2] + `1,"v":` + s[at+2:])
	case n == 5 && member >= 0:
		name := strings.LastIndexByte(s[:at+member], '"')
		return []byte(s[:name+1] + fmt.Sprintf(`\u%04x`, s[name+1]) + s[min(len(s), name+2):])
	case n == 6 && member >= 0:
		name := strings.LastIndexByte(s[:at+member], '"')
		return []byte(s[:name+1] + strings.ToUpper(s[name+1:name+2]) + s[name+2:])
	case n == 7:
		digit := strings.IndexAny(s[at:], "0123456789")
		if digit >= 0 {
			at += digit + 1
			return []byte(s[:at] + []string{".0", "e0", "E+0", ".00000000000000000001", "0"}[m.IntN(5)] + s[at:])
		}
	}
	return m.changeBytes(b)
}

// changeBytes flips, removes, duplicates or adds bytes.
func (m *mutator) changeBytes(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) == 0 {
		return []byte{byte(m.IntN(256))}
	}
	at := m.IntN(len(b))
	switch m.IntN(6) {
	case 0:
		b[at] = byte(m.IntN(256))
	case 1:
		b[at] ^= 1 << m.IntN(8)
	case 2:
		return slices.Delete(b, at, min(len(b), at+1+m.IntN(32)))
	case 3:
		return slices.Insert(b, at, byte(m.IntN(256)))
	case 4:
		return slices.Insert(b, at, b[at:min(len(b), at+1+m.IntN(64))]...)
	default:
		return b[:at]
	}
	return b
}
