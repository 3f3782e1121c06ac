package transfer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/storage"
)

// furnished is an export of an organization with records of most kinds.
func furnished(t *testing.T) (here *house, red *resident, dir string) {
	t.Helper()
	here = newHouse(t, model(t), newKeyring(t))
	here.start()
	red = here.found("red", "ann@example.com", 3)
	red.live(25)
	red.furnish(t, &collected{t: t})
	here.stop()
	dir = filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	return here, red, dir
}

// recordPieces returns the pieces of an export that contain records.
func recordPieces(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "[rs]e*.ndjson")) // records and service
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	return all
}

// line is a line of a piece of records.
type recordText struct {
	Kind        storage.Kind    `json:"kind"`
	Key         string          `json:"key"`
	KeyBase64   *string         `json:"key_base64,omitempty"`
	Version     json.Number     `json:"version"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueBase64 *string         `json:"value_base64,omitempty"`
}

// editKind changes the first record of a kind in a piece. Without one it inserts one where it belongs. It reports whether there was
// one.
func editKind(t *testing.T, path string, kind storage.Kind, edit func(*recordText)) (found bool) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	at := len(lines) - 1
	r := recordText{Kind: kind, Key: "courier", Version: "1", Value: json.RawMessage("{}")}
	for i, line := range lines[1 : len(lines)-1] {
		var have recordText
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&have); err != nil {
			t.Fatal(err)
		}
		if have.Kind >= kind {
			at, found = i+1, have.Kind == kind
			if found {
				r = have
			}
			break
		}
	}
	edit(&r)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	end := at
	if found {
		end++
	}
	lines = slices.Replace(lines, at, end, strings.TrimSpace(text.String()))
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return found
}

// touched changes a record so that it can still be read.
func touched(r *recordText) { r.Version += "1" }

// unreadable replaces the value by one that no owner can read, and keeps it JSON.
func unreadable(r *recordText) {
	text := base64.StdEncoding.EncodeToString([]byte(`["courier"]`))
	r.Value, r.ValueBase64 = nil, &text
}

// withCounter adds a number that no honest record has.
func withCounter(r *recordText) {
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Value, &members) != nil { // it is no JSON object: another edit covers it
		unreadable(r)
		return
	}
	members["counter"] = json.RawMessage("1152921504606846976")
	r.Value, _ = json.Marshal(members)
}

// Whoever carries an export can edit no record of any kind in it, nor add one: the import refuses the export, and writes nothing.
// A new kind of record is edited here as soon as the table of kinds has it.
func TestCourierEditsExport(t *testing.T) {
	here, _, dir := furnished(t)
	pristine := files(t, dir)
	own, service := map[fate]bool{moves: true, ofLog: true}, map[fate]bool{entry: true, repeated: true}
	edited := 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		f := kinds[kind].fate
		if !own[f] && !service[f] {
			continue // no export has such records; TestEveryKindIsNamed
		}
		name := "records.ndjson"
		if service[f] {
			name = "service.ndjson"
		}
		attempt := func(edit func(*recordText)) (broken string, found bool) {
			broken = filepath.Join(t.TempDir(), "export")
			restore(t, broken, pristine)
			for _, path := range recordPieces(t, broken) {
				if filepath.Base(path) == name {
					found = editKind(t, path, kind, edit)
				}
			}
			resum(t, broken)
			return broken, found
		}
		broken, found := attempt(touched)
		there := newHouse(t, model(t), here.keyring)
		_, checked := there.checkExport(broken, "")
		_, imported := there.tryImport(broken, "")
		if !errors.Is(checked, transfer.ErrUnauthenticated) || !errors.Is(imported, transfer.ErrUnauthenticated) {
			t.Errorf("%s, edited: check: got %v; import: got %v", kind, checked, imported)
		}
		if found {
			edited++
		}
		// With --unauthenticated each owner still reads its records before anything is written.
		for what, edit := range map[string]func(*recordText){
			"unreadable":             unreadable,
			"version 2^64-1":         func(r *recordText) { r.Version = "18446744073709551615" },
			"version 0":              func(r *recordText) { r.Version = "0" },
			"of an unknown kind":     func(r *recordText) { r.Kind += "0" },
			"with a counter of 2^60": withCounter,
		} {
			broken, _ := attempt(edit)
			there := newHouse(t, model(t), here.keyring)
			i := &transfer.Importer{Place: there.place(there.openAnchors()), Dir: broken, Sealed: rekey.SealedRecords(), Unauthenticated: true}
			if _, err := i.Run(t.Context(), ""); !errors.Is(err, transfer.ErrDamaged) || strings.Contains(err.Error(), "courier\"]") {
				t.Errorf("%s, %s: got %v", kind, what, err)
			}
			if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 || len(serviceRecords(t, there.engine)) > 0 {
				t.Errorf("%s, %s: something was written: %v", kind, what, tenants)
			}
		}
	}
	if edited < 30 {
		t.Errorf("only %d kinds were in the export: furnish it", edited)
	}
}
