package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	oracle "github.com/gowebpki/jcs"

	"github.com/agentledger/agentledger/id"
)

// fullRecord returns a record with a value in every member and texts that need escapes.
func fullRecord() Record {
	return Record{
		Origin:         "log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
		OrganizationID: id.Organization{0x8d, 0x0f, 15: 0x11},
		SequenceNum:    42,
		EventID:        "evt_full",
		AgentID:        "agt_full",
		KeyID:          "key_full",
		PublicKey:      "z6MknHH6NFjuvyf3syLupaRbbHfUL1qGBRV8MheviVRtBKfd",
		Signer:         SignerBridge,
		Custody:        CustodyServer,
		EventDigest:    id.Hash{1, 2, 3},
		SigForm:        "canonical",
		SigValueB64:    "VsED/+==",
		IngestKeyID:    "ik_full",
		ReceivedAt:     1_795_176_000_500,
		Policy: Policy{
			Evaluated:     true,
			Declared:      id.Allow,
			Effective:     id.Deny,
			PolicyID:      "pol_full",
			PolicyVersion: 3,
			PolicyDigest:  id.Hash{4},
			RuleID:        "a \"quoted\" rule\u2028\x01 <é>",
			Engine:        "rules",
			InputDigest:   id.Hash{5},
			EvaluatedAt:   1_795_176_000_499,
			Limits:        []byte(`[{"added":1,"before":0.5,"limit_id":"daily"}]`),
			ApprovalID:    "apr_full",
		},
		V: 1,
	}
}

// nullable returns functions that set each nullable member to null.
func nullable() map[string]func(*Record) {
	return map[string]func(*Record){
		"ingest_key_id":  func(r *Record) { r.IngestKeyID = "" },
		"policy_id":      func(r *Record) { r.Policy.PolicyID = "" },
		"policy_version": func(r *Record) { r.Policy.PolicyVersion = 0 },
		"policy_digest":  func(r *Record) { r.Policy.PolicyDigest = id.Hash{} },
		"rule_id":        func(r *Record) { r.Policy.RuleID = "" },
		"engine":         func(r *Record) { r.Policy.Engine = "" },
		"input_digest":   func(r *Record) { r.Policy.InputDigest = id.Hash{} },
		"evaluated_at":   func(r *Record) { r.Policy.EvaluatedAt = 0 },
		"limits":         func(r *Record) { r.Policy.Evaluated, r.Policy.Limits = false, nil },
		"approval_id":    func(r *Record) { r.Policy.ApprovalID = "" },
	}
}

func TestVectorRecords(t *testing.T) {
	for i, v := range readLedgerVectors(t).Entries {
		r, err := ParseRecord([]byte(v.Record))
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if got := string(r.Text()); got != v.Record {
			t.Errorf("record %d: got %s, want %s", i, got, v.Record)
		}
		if r.SequenceNum != uint64(i)+1 || r.V != 1 || r.Signer != SignerAgent {
			t.Errorf("record %d: got %+v", i, r)
		}
	}
}

// Another library renders the same text from the same members, for every combination of
// nulls.
func TestTextIsCanonical(t *testing.T) {
	nulls := nullable()
	var names []string
	for name := range nulls {
		names = append(names, name)
	}
	slices.Sort(names)
	for set := range 1 << len(names) {
		r := fullRecord()
		for i, name := range names {
			if set>>i&1 == 1 {
				nulls[name](&r)
			}
		}
		text := r.Text()
		if want := asMap(t, r); !bytes.Equal(text, want) {
			t.Fatalf("got  %s\nwant %s", text, want)
		}
		parsed, err := ParseRecord(text)
		if err != nil || !reflect.DeepEqual(parsed, r) {
			t.Fatalf("%s: parsed as %+v, %v", text, parsed, err)
		}
	}
}

// asMap renders r from a map.
func asMap(t testing.TB, r Record) []byte {
	t.Helper()
	orNull := func(isNull bool, v any) any {
		if isNull {
			return nil
		}
		return v
	}
	p := r.Policy
	text, err := json.Marshal(map[string]any{
		"v": 1, "origin": r.Origin, "organization_id": r.OrganizationID, "sequence_num": r.SequenceNum,
		"event_id": r.EventID, "agent_id": r.AgentID, "key_id": r.KeyID, "public_key": r.PublicKey,
		"signer": r.Signer, "custody": r.Custody, "event_digest": r.EventDigest, "sig_form": r.SigForm,
		"sig_value_b64": r.SigValueB64, "ingest_key_id": orNull(r.IngestKeyID == "", r.IngestKeyID),
		"received_at": r.ReceivedAt,
		"policy": map[string]any{
			"evaluated": p.Evaluated, "declared": p.Declared, "effective": p.Effective,
			"policy_id":      orNull(p.PolicyID == "", p.PolicyID),
			"policy_version": orNull(p.PolicyVersion == 0, p.PolicyVersion),
			"policy_digest":  orNull(p.PolicyDigest == id.Hash{}, p.PolicyDigest),
			"rule_id":        orNull(p.RuleID == "", p.RuleID),
			"engine":         orNull(p.Engine == "", p.Engine),
			"input_digest":   orNull(p.InputDigest == id.Hash{}, p.InputDigest),
			"evaluated_at":   orNull(p.EvaluatedAt == 0, p.EvaluatedAt),
			"limits":         orNull(p.Limits == nil, json.RawMessage(p.Limits)),
			"approval_id":    orNull(p.ApprovalID == "", p.ApprovalID),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := oracle.Transform(text)
	if err != nil {
		t.Fatal(err)
	}
	return canonical
}

func TestLimitsNotSet(t *testing.T) {
	r := fullRecord()
	r.Policy.Limits = nil
	if got := string(r.Text()); !strings.Contains(got, `"limits":[],`) {
		t.Errorf("evaluated without limits: got %s", got)
	}
	r.Policy.Evaluated = false
	if got := string(r.Text()); !strings.Contains(got, `"limits":null,`) {
		t.Errorf("not evaluated: got %s", got)
	}
}

// A result names the stored intent that decided. All other records have no such member, so
// that their bytes are the same as before the member existed.
func TestIntent(t *testing.T) {
	r := fullRecord()
	without := string(r.Text())
	if strings.Contains(without, "intent") {
		t.Errorf("not a result: got %s", without)
	}
	r.Policy.Intent = "evt_intent"
	want := canonicalWith(t, fullRecord(), func(_, p map[string]any) { p["intent"] = "evt_intent" })
	if got := r.Text(); !bytes.Equal(got, want) {
		t.Errorf("result: got %s, want %s", got, want)
	}
	if parsed, err := ParseRecord(want); err != nil || !reflect.DeepEqual(parsed, r) {
		t.Errorf("result: parsed as %+v, %v", parsed, err)
	}
	for name, value := range map[string]any{"null": nil, "empty": "", "a number": 1, "an object": map[string]any{}} {
		text := canonicalWith(t, fullRecord(), func(_, p map[string]any) { p["intent"] = value })
		if _, err := ParseRecord(text); !errors.Is(err, ErrRecord) {
			t.Errorf("intent %s: got %v, want %v", name, err, ErrRecord)
		}
	}
}

// A frame is rendered before its number is known, and may be rendered again.
func TestFrame(t *testing.T) {
	r := fullRecord()
	f := r.Frame()
	for _, seq := range []uint64{1, 42, MaxSeq} {
		r.SequenceNum, r.ReceivedAt = seq, r.ReceivedAt+1
		got := f.AppendTo([]byte("before"), r.ReceivedAt, seq)
		if want := "before" + string(r.Text()); string(got) != want {
			t.Errorf("seq %d: got %s, want %s", seq, got, want)
		}
		if len(got)-len("before") > f.Len() {
			t.Errorf("seq %d: %d bytes, more than Len() = %d", seq, len(got), f.Len())
		}
	}
	if got := len(f.AppendTo(nil, 0, 1<<64-1)); got != f.Len() {
		t.Errorf("longest: got %d bytes, want %d", got, f.Len())
	}
}

// Fill renders a record into the memory of its frame and leaves earlier results unchanged: a record that is rendered
// again gets new memory. Other frames are not affected.
func TestFill(t *testing.T) {
	for _, rule := range []string{"", "r", strings.Repeat("r", 700), strings.Repeat("r", 2000)} {
		r, blue := fullRecord(), fullRecord()
		r.Policy.RuleID, blue.EventID = rule, "evt_blue"
		f, beside := r.Frame(), blue.Frame()
		var got [][]byte
		var want []string
		for i, seq := range []uint64{MaxSeq, 1, 42} {
			r.SequenceNum, r.ReceivedAt = seq, r.ReceivedAt+id.Instant(i)
			other := r.Frame()
			want = append(want, string(other.AppendTo(nil, r.ReceivedAt, seq)))
			got = append(got, f.Fill(r.ReceivedAt, seq))
			if again := f.AppendTo(nil, r.ReceivedAt, seq); string(again) != want[i] || f.Len() < len(again) {
				t.Errorf("seq %d, after it was filled: got %s, want %s", seq, again, want[i])
			}
		}
		for i := range want {
			if string(got[i]) != want[i] || cap(got[i]) != len(got[i]) {
				t.Errorf("rule of %d bytes, filling %d: got %.900s, want %.900s", len(rule), i, got[i], want[i])
			}
		}
		if text := beside.Fill(blue.ReceivedAt, 7); !bytes.Contains(text, []byte("evt_blue")) {
			t.Errorf("the other frame: got %s", text)
		}
	}
}

// The capacity of a frame suffices for its record with the longest words, with little to spare.
func TestFrameCapacity(t *testing.T) {
	r := fullRecord()
	r.Policy.RuleID, r.SequenceNum = strings.Repeat("r", 3000), 1<<64-1
	r.Policy.Declared, r.Policy.Effective, r.Policy.Intent = id.AllowWithObligation, id.AllowWithObligation, "evt_intent"
	f := r.Frame()
	if got := cap(f.text); got < f.Len() || got > f.Len()+512 {
		t.Errorf("got capacity %d, the longest record has %d bytes", got, f.Len())
	}
}

// memberNames returns the members of a record and those of its policy.
func memberNames() (record, policy []string) {
	return []string{"agent_id", "custody", "event_digest", "event_id", "ingest_key_id", "key_id", "organization_id", "origin",
			"policy", "public_key", "received_at", "sequence_num", "sig_form", "sig_value_b64", "signer", "v"},
		[]string{"approval_id", "declared", "effective", "engine", "evaluated", "evaluated_at", "input_digest", "limits",
			"policy_digest", "policy_id", "policy_version", "rule_id"}
}

// canonicalWith returns the canonical text of a record whose members change has modified.
func canonicalWith(t *testing.T, r Record, change func(record, policy map[string]any)) []byte {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(r.Text(), &members); err != nil {
		t.Fatal(err)
	}
	change(members, members["policy"].(map[string]any))
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := oracle.Transform(text)
	if err != nil {
		t.Fatal(err)
	}
	return canonical
}

// Canonical JSON is not enough: every member must be present, have its type and, unless it
// is nullable, not be null.
func TestParseRecordRefusesMembers(t *testing.T) {
	refuse := func(name string, change func(record, policy map[string]any)) {
		text := canonicalWith(t, fullRecord(), change)
		if _, err := ParseRecord(text); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: got %v, want %v", name, err, ErrRecord)
		}
	}
	inRecord, inPolicy := memberNames()
	nulls := nullable()
	each := func(names []string, members func(record, policy map[string]any) map[string]any) {
		for _, name := range names {
			refuse(name+" missing", func(r, p map[string]any) { delete(members(r, p), name) })
			refuse(name+" in upper case", func(r, p map[string]any) {
				m := members(r, p)
				m[strings.ToUpper(name)] = m[name]
				delete(m, name)
			})
			refuse(name+" an object", func(r, p map[string]any) { members(r, p)[name] = map[string]any{} })
			if nulls[name] != nil {
				refuse(name+" empty text", func(r, p map[string]any) { members(r, p)[name] = "" })
			}
			if nulls[name] == nil || name == "limits" { // this record is evaluated
				refuse(name+" null", func(r, p map[string]any) { members(r, p)[name] = nil })
			}
		}
		refuse("unknown member", func(r, p map[string]any) { members(r, p)["zzz"] = 1 })
	}
	each(inRecord, func(r, _ map[string]any) map[string]any { return r })
	each(inPolicy, func(_, p map[string]any) map[string]any { return p })
}

func TestParseRecordRefuses(t *testing.T) {
	r := fullRecord()
	good := string(r.Text())
	for _, row := range []struct{ name, old, with string }{
		{"organization in upper case", "8d0f0000", "8D0F0000"},
		{"organization without dashes", "8d0f0000-", "8d0f0000"},
		{"hash in upper case", `"event_digest":"010203`, `"event_digest":"01020A`},
		{"hash short", `"event_digest":"010203`, `"event_digest":"0102`},
		{"nullable hash of zeros", `"policy_digest":"04`, `"policy_digest":"00`},
		{"nullable number 0", `"policy_version":3`, `"policy_version":0`},
		{"version negative", `"policy_version":3`, `"policy_version":-3`},
		{"version not exact as double", `"policy_version":3`, `"policy_version":9007199254740993`},
		{"sequence 0", `"sequence_num":42`, `"sequence_num":0`},
		{"sequence with leading zero", `"sequence_num":42`, `"sequence_num":042`},
		{"sequence as text", `"sequence_num":42`, `"sequence_num":"42"`},
		{"sequence with fraction", `"sequence_num":42`, `"sequence_num":42.0`},
		{"sequence not exact as double", `"sequence_num":42`, `"sequence_num":9007199254740993`},
		{"time without milliseconds", ".500Z", "Z"},
		{"time with microseconds", ".500Z", ".500000Z"},
		{"time with offset", ".500Z", ".500+00:00"},
		{"time on an invalid date", "2026-11-20", "2026-11-31"},
		{"evaluated_at at the epoch", `"evaluated_at":"2026-11-20T12:00:00.499Z"`, `"evaluated_at":"1970-01-01T00:00:00.000Z"`},
		{"decision in upper case", `"effective":"deny"`, `"effective":"Deny"`},
		{"unknown decision", `"effective":"deny"`, `"effective":"maybe"`},
		{"unknown signer", `"signer":"bridge"`, `"signer":"operator"`},
		{"unknown custody", `"custody":"server"`, `"custody":"nobody"`},
		{"unknown form", `"sig_form":"canonical"`, `"sig_form":"raw"`},
		{"v 2", `"v":1`, `"v":2`},
		{"v 1.0", `"v":1`, `"v":1.0`},
		{"unnecessary escape", `"agt_full"`, `"agt\u005ffull"`},
		{"slash escaped", `log.example/o`, `log.example\/o`},
		{"control character in upper-case hex", `\u0001`, `\u000A`},
		{"lone surrogate", `"agt_full"`, `"agt\ud800"`},
		{"invalid UTF-8", `"agt_full"`, "\"agt\xff\""},
		{"space", `"v":1`, `"v": 1`},
		{"member twice", `"v":1`, `"v":1,"v":1`},
		{"unknown member", `"v":1`, `"v":1,"w":1`},
		{"other order", `{"agent_id":"agt_full","custody":"server"`, `{"custody":"server","agent_id":"agt_full"`},
		{"limits not canonical", `[{"added":1,`, `[{"added":1.0,`},
		{"limits in another order", `"added":1,"before":0.5`, `"before":0.5,"added":1`},
		{"limits with a space", `[{"added"`, `[ {"added"`},
		{"limits an object", `[{"added":1,"before":0.5,"limit_id":"daily"}]`, `{}`},
		{"limits a text", `[{"added":1,"before":0.5,"limit_id":"daily"}]`, `"x"`},
		{"limits too deep", `[{"added":1,"before":0.5,"limit_id":"daily"}]`, strings.Repeat("[", 40) + strings.Repeat("]", 40)},
		{"comma at the end", `"v":1}`, `"v":1,}`},
		{"trailing value", `"v":1}`, `"v":1}1`},
		{"trailing line feed", `"v":1}`, "\"v\":1}\n"},
		{"BOM", `{"agent_id"`, "\ufeff{\"agent_id\""},
		{"cut", `,"v":1}`, ""},
		{"an array", good, "[" + good + "]"},
		{"null", good, "null"},
		{"empty", good, ""},
	} {
		text := strings.Replace(good, row.old, row.with, 1)
		if text == good {
			t.Fatalf("%s: nothing was mutated", row.name)
		}
		got, err := ParseRecord([]byte(text))
		if !errors.Is(err, ErrRecord) || got.SequenceNum != 0 {
			t.Errorf("%s: got %+v, %v, want %v", row.name, got, err, ErrRecord)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, e := range readLedgerVectors(f).Entries {
		f.Add([]byte(e.Record))
	}
	for _, r := range []Record{fullRecord(), plainRecord()} {
		f.Add(r.Text())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		comparePlainReader(t, text)
		r, err := ParseRecord(text)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Fatalf("got %v, want %v", err, ErrRecord)
			}
			return
		}
		if !bytes.Equal(r.Text(), text) {
			t.Fatalf("written as %s", r.Text())
		}
		if canonical, err := oracle.Transform(text); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("not canonical: %v, want %s", err, canonical)
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	r := fullRecord()
	b.ReportAllocs()
	for b.Loop() {
		r.Frame()
	}
}

// What remains once the sequence number is known: copy, hash, entry, leaf hash.
func BenchmarkSequence(b *testing.B) {
	r := fullRecord()
	f := r.Frame()
	text := make([]byte, 0, f.Len())
	var e Entry
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		text = f.AppendTo(text[:0], r.ReceivedAt, e.Seq)
		e.Record = RecordHash(text)
		e.Prev = e.Hash()
	}
}

func BenchmarkParseRecord(b *testing.B) {
	r := fullRecord()
	text := r.Text()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRecord(text); err != nil {
			b.Fatal(err)
		}
	}
}
