package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/verify"
)

// logs returns a folder with bundles of two organizations, and their keys.
func logs(t *testing.T) (dir, key1, key2 string) {
	t.Helper()
	s := filled(t, 6)
	dir = t.TempDir()
	if err := writeLogs(dir, s); err != nil {
		t.Fatal(err)
	}
	return dir, s.Organization(0).LogKey().String(), s.Organization(1).LogKey().String()
}

func load(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const wholeBundle = `event       evt_d
log         log.example/o/ab000000-0000-0000-0000-000000000001
ok    inclusion   the entry is in the tree that the checkpoint signs, at its index
ok    checkpoint  the checkpoint is signed by the key given
ok    chain       the entry names the one before it, which is in the same tree
ok    record      the entry commits to this record of this event
ok    signature   the key in the record signed this event; the record calls it the agent's
ok    envelope    this envelope is the one that was signed
not covered: organization_slug, disclosure, record.public_key, record.custody, record.received_at, record.policy
proved, as far as checked above
`

func TestVerify(t *testing.T) {
	dir, key, _ := logs(t)
	if got := aps(t, "", "verify", filepath.Join(dir, "full.json"), "--key", key); got != (outcome{0, wholeBundle, ""}) {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"first.json", "record.json", "commitment.json"} {
		if got := aps(t, load(t, filepath.Join(dir, name)), "verify", "-", "--key", key); got.status != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestVerifyMutated(t *testing.T) {
	dir, key, other := logs(t)
	text := load(t, filepath.Join(dir, "full.json"))
	var b verify.Bundle
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %s in the bundle", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, tc := range map[string]struct {
		text, key string
		status    int
		report    string
	}{
		"event hash":                             {change(`"event_hash":"`+b.EventHash.String(), `"event_hash":"`+strings.Repeat("0", 64)), key, 1, "aps: not proved: inclusion: entry and event_hash: mismatch\n"},
		"sequence number":                        {change(`"sequence_num":4`, `"sequence_num":5`), key, 1, "aps: not proved: inclusion: entry, sequence_num and log_index: mismatch\n"},
		"proof":                                  {change(b.Inclusion.Hashes[0].String(), strings.Repeat("1", 64)), key, 1, "aps: not proved: inclusion: "},
		"checkpoint's size":                      {change(`\n6\n`, `\n7\n`), key, 1, "aps: not proved: inclusion: "},
		"key of another log":                     {text, other, 2, "aps: can't tell: signed by the key " + signerOf(key) + ", which is not among those that you trust."},
		"key of another log, and a wrong record": {change(`\"effective\":\"allow\"`, `\"effective\":\"deny\"`), other, 1, "aps: not proved: checkpoint: log_key and the key given: mismatch\n"},
		"previous entry":                         {change(*quote(t, b.PreviousEntry), `"x"`), key, 1, "aps: not proved: chain: previous_entry: malformed\n"},
		"event id":                               {change(`"event_id":"evt_d"`, `"event_id":"evt_c"`), key, 1, "aps: not proved: record: "},
		"decision in the record":                 {change(`\"effective\":\"allow\"`, `\"effective\":\"deny\"`), key, 1, "aps: not proved: record: "},
		"decision in the envelope":               {change(`\"policy_decision\":\"allow\"`, `\"policy_decision\":\"deny\"`), key, 1, "aps: not proved: envelope: "},
		"hash cut short":                         {change(b.EventHash.String(), b.EventHash.String()[1:]), key, 1, "aps: not proved: parse bundle: "},
		"member twice":                           {change(`"version":1`, `"version":1,"version":1`), key, 1, "aps: not proved: parse bundle: "},
		"member missing":                         {change(`"log_key"`, `"log_kez"`), key, 1, "aps: not proved: parse bundle: "},
		"member for a terminal":                  {change(`"event_id":"evt_d"`, `"event_id":"\u001b[2Jevt_d"`), key, 1, "aps: not proved: record: "},
		"version of another time":                {change(`"version":1`, `"version":2`), key, 2, "aps: not a bundle that this program reads: parse bundle: unknown version\n"},
		"cut off":                                {text[:len(text)/2], key, 2, "aps: not a bundle that this program reads: "},
		"another document":                       {`{"error":"Not found"}`, key, 2, "aps: not a bundle that this program reads: "},
		"empty":                                  {``, key, 2, "aps: not a bundle that this program reads: "},
		"no key":                                 {text, "", 2, "aps: can't tell whose log this is: neither --key nor --policy names it\n"},
		"no key and a wrong record":              {change(`\"effective\":\"allow\"`, `\"effective\":\"deny\"`), "", 1, "aps: not proved: record: "},
		"malformed key":                          {text, "log", 2, "aps: --key: "},
	} {
		args := []string{"verify", "-"}
		if tc.key != "" {
			args = append(args, "--key", tc.key)
		}
		got := aps(t, tc.text, args...)
		if got.status != tc.status || !strings.HasPrefix(got.report, tc.report) || strings.Contains(got.out+got.report, "\x1b") || strings.Contains(got.out, "proved") {
			t.Errorf("%s: got %+v", name, got)
		}
		if json := aps(t, tc.text, append(args, "--json")...); json.status != tc.status || json.report != got.report || strings.Count(json.out, "\n") > 1 {
			t.Errorf("%s, as JSON: got %+v", name, json)
		}
	}
}

// quote returns a text as it appears in JSON.
func quote(t *testing.T, s *string) *string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	quoted := string(text)
	return &quoted
}

func TestVerifyProofText(t *testing.T) {
	dir, key, other := logs(t)
	file := filepath.Join(dir, "full.json")
	entry, wrong := file+".entry", filepath.Join(dir, "record.json.entry")
	text := load(t, file+".tlog-proof")
	keys := savedKeys(t, other, key)
	for name, tc := range map[string]struct {
		text   string
		args   []string
		status int
		want   string // in output or report
	}{
		"whole":                     {text, []string{"--key", key, "--entry", entry}, 0, "proved: entry 3 in a tree of 6 entries."},
		"by another key of the log": {text, []string{"--key", renamed(t, key, 9), "--keys", savedKeys(t, renamed(t, key, 9), key), "--entry", entry}, 0, "proved: entry 3 in a tree of 6 entries."},
		"JSON":                      {text, []string{"--key", key, "--entry", entry, "--json"}, 0, `{"checkpoint_ok":true,"inclusion_ok":true,"ok":true,"origin":"log.example/o/ab000000-0000-0000-0000-000000000001","log_index":3,"tree_size":6,"cosignatures":[],"errors":[]}`},
		"a line end behind it":      {text, []string{"--key", key, "--entry", written(t, load(t, entry)+"\n")}, 0, "proved: entry 3 in a tree of 6 entries."},
		"two line ends behind it":   {text, []string{"--key", key, "--entry", written(t, load(t, entry)+"\n\n")}, 1, "not proved: inclusion: "},
		"another entry":             {text, []string{"--key", key, "--entry", wrong}, 1, "FAIL  inclusion"},
		"another key":               {text, []string{"--key", other, "--entry", entry}, 2, "can't tell: signed by the key " + signerOf(key) + ", "},
		"another key and entry":     {text, []string{"--key", other, "--entry", wrong}, 1, "not proved: checkpoint: "},
		"another index":             {strings.Replace(text, "index 3", "index 2", 1), []string{"--key", key, "--entry", entry}, 1, "not proved: inclusion: "},
		"another size":              {strings.Replace(text, "\n6\n", "\n7\n", 1), []string{"--key", key, "--entry", entry}, 1, "not proved: checkpoint: "},
		"no entry":                  {text, []string{"--key", key}, 2, "set --key or --policy, and --entry"},
		"no key":                    {text, []string{"--entry", entry}, 2, "set --key or --policy, and --entry"},
		"no entry file":             {text, []string{"--key", key, "--entry", "none"}, 2, "--entry"},
		"entry from the same input": {text, []string{"--key", key, "--entry", "-"}, 2, "--entry: standard input is already used for the proof"},
		"more than it shows":        {text, []string{"--key", key, "--entry", entry, "--require", "record"}, 2, "can't tell: a tlog-proof does not show the record"},
		"malformed":                 {strings.Replace(text, "index 3", "index 03", 1), []string{"--key", key, "--entry", entry}, 1, "not proved: parse proof: index line"},
		"version of another time":   {strings.Replace(text, "@v1", "@v2", 1), []string{"--key", key, "--entry", entry}, 2, "not a tlog-proof"},
		"keys that are none":        {text, []string{"--key", key, "--keys", entry, "--entry", entry}, 2, "--keys"},
		"keys that are not there":   {text, []string{"--key", key, "--keys", "none", "--entry", entry}, 2, "--keys"},
		"keys of another log":       {text, []string{"--key", other, "--keys", savedKeys(t, key), "--entry", entry}, 2, "--keys: the list does not hold the key that you trust"},
		"keys of several logs":      {text, []string{"--key", other, "--keys", keys, "--entry", entry}, 2, "--keys: the list has keys of several logs"},
	} {
		got := aps(t, tc.text, append([]string{"verify", "-"}, tc.args...)...)
		if got.status != tc.status || !strings.Contains(got.out+got.report, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestVerifyReceipt(t *testing.T) {
	dir, key, other := logs(t)
	file := filepath.Join(dir, "full.json")
	entry, wrong := file+".entry", filepath.Join(dir, "record.json.entry")
	receipt := load(t, file+".cose")
	other5 := load(t, filepath.Join(dir, "record.json.cose"))
	quorum := func(lines string) string { return written(t, "log "+key+"\n"+lines) }
	byWitness := "witness w " + witness(t, 1).Key().String() + "\nquorum w\n"
	replace := func(old, new string) string {
		t.Helper()
		if strings.Count(receipt, old) != 1 {
			t.Fatalf("%q is in the receipt %d times", old, strings.Count(receipt, old))
		}
		return strings.Replace(receipt, old, new, 1)
	}
	for name, tc := range map[string]struct {
		text   string
		args   []string
		status int
		want   string // in output or report
	}{
		"whole":                     {receipt, []string{"--key", key, "--entry", entry}, 0, "proved: entry 3 in a tree of 6 entries."},
		"by another key of the log": {receipt, []string{"--key", renamed(t, key, 9), "--keys", savedKeys(t, renamed(t, key, 9), key), "--entry", entry}, 0, "proved: entry 3 in a tree of 6 entries."},
		"JSON":                      {receipt, []string{"--key", key, "--entry", entry, "--json"}, 0, `{"ok":true,"origin":"log.example/o/ab000000-0000-0000-0000-000000000001","log_index":3,"tree_size":6,"root_hash":"`},
		"a line end behind it":      {receipt, []string{"--key", key, "--entry", written(t, load(t, entry)+"\n")}, 0, "proved: entry 3 in a tree of 6 entries."},
		"two line ends behind it":   {receipt, []string{"--key", key, "--entry", written(t, load(t, entry)+"\n\n")}, 1, "not proved: "},
		"policy without witnesses":  {receipt, []string{"--policy", quorum("quorum none\n"), "--entry", entry}, 0, "proved: entry 3 in a tree of 6 entries."},
		"policy with witnesses":     {receipt, []string{"--policy", quorum(byWitness), "--entry", entry}, 2, "a COSE receipt has no cosignatures"},
		"another entry":             {receipt, []string{"--key", key, "--entry", wrong}, 1, "not proved: entry and index"},
		"of another entry":          {other5, []string{"--key", key, "--entry", entry}, 1, "not proved: entry and index"},
		"another key":               {receipt, []string{"--key", other, "--entry", entry}, 2, "can't tell: signed by the key " + signerOf(key) + ", "},
		"another key and entry":     {receipt, []string{"--key", other, "--entry", wrong}, 1, "not proved: entry and index"},
		"another index":             {replace("\x83\x06\x03", "\x83\x06\x02"), []string{"--key", key, "--entry", entry}, 1, "not proved: entry and index"},
		"another size":              {strings.Replace(replace("\x83\x06\x03", "\x83\x05\x03"), "tree 6", "tree 5", 1), []string{"--key", key, "--entry", entry}, 1, "not proved: check receipt: "},
		"two sizes":                 {replace("tree 6", "tree 7"), []string{"--key", key, "--entry", entry}, 2, "can't tell: not a COSE receipt of this service"},
		"signature changed":         {receipt[:len(receipt)-1] + string([]byte{receipt[len(receipt)-1] ^ 1}), []string{"--key", key, "--entry", entry}, 1, "FAIL  receipt"},
		"cut":                       {receipt[:len(receipt)-1], []string{"--key", key, "--entry", entry}, 2, "can't tell: not a COSE receipt of this service"},
		"no entry":                  {receipt, []string{"--key", key}, 2, "set --key or --policy, and --entry"},
		"no key":                    {receipt, []string{"--entry", entry}, 2, "set --key or --policy, and --entry"},
		"no entry file":             {receipt, []string{"--key", key, "--entry", "none"}, 2, "--entry"},
		"entry from the same input": {receipt, []string{"--key", key, "--entry", "-"}, 2, "--entry: standard input is already used for the proof"},
		"more than it shows":        {receipt, []string{"--key", key, "--entry", entry, "--require", "full"}, 2, "can't tell: a COSE receipt does not show the full"},
	} {
		got := aps(t, tc.text, append([]string{"verify", "-"}, tc.args...)...)
		if got.status != tc.status || !strings.Contains(got.out+got.report, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestVerifyFetches(t *testing.T) {
	s := filled(t, 4)
	mine, other := s.Organization(0), s.Organization(1)
	before := len(s.Requests())
	t.Setenv("APS_URL", s.URL)
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"fetched":       {[]string{"evt_d", "--url", s.URL, "--slug", string(mine.Slug), "--key", mine.LogKey().String()}, 0, "proved, as far as checked above"},
		"another's key": {[]string{"evt_d", "--url", s.URL, "--slug", string(mine.Slug), "--key", other.LogKey().String()}, 2, "can't tell: signed by the key "},
		"no such event": {[]string{"evt_x", "--url", s.URL, "--slug", string(mine.Slug), "--key", mine.LogKey().String()}, 2, "404 Not found"},
		"address":       {[]string{s.URL + "/v1/public/orgs/" + string(mine.Slug) + "/verify/evt_d", "--key", mine.LogKey().String()}, 0, "proved, as far as checked above"},
		"no address":    {[]string{s.URL + "/nothing", "--key", mine.LogKey().String()}, 2, "404 Not found"},
		"bad address":   {[]string{"http://", "--key", mine.LogKey().String()}, 2, "base URL"},
		"no slug":       {[]string{"evt_d", "--url", s.URL}, 2, "set --slug"},
	} {
		if got := aps(t, "", append([]string{"verify"}, tc.args...)...); got.status != tc.status || !strings.Contains(got.out+got.report, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if n := len(s.Requests()) - before; n != 5 {
		t.Errorf("%d requests", n)
	}
	// The address in the environment alone fetches nothing.
	if got := aps(t, "", "verify", "evt_d", "--key", mine.LogKey().String()); got.status != 2 || len(s.Requests()) != before+5 {
		t.Errorf("got %+v", got)
	}
}

// signerOf is a key's name and id, without the key.
func signerOf(vkey string) string {
	parts := strings.SplitN(vkey, "+", 3)
	return parts[0] + "+" + parts[1]
}
