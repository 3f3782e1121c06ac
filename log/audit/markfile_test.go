package audit_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	f, err := audit.OpenMarkFile(path)
	if err != nil {
		t.Fatal(err)
	}
	red := audit.Mark{Size: 200, Root: id.Hash{1}, Counted: map[log.Month]uint64{24311: 7},
		Findings: []audit.Finding{{Origin: "log.test/o/red", Place: "record 7", Problem: "is malformed", Level: log.Suspect}}}
	blue := audit.Mark{Size: 3, Root: id.Hash{2}, Counted: map[log.Month]uint64{}}
	for origin, m := range map[id.Origin]audit.Mark{"log.test/o/red": red, "log.test/o/blue": blue} {
		if err := f.Note(origin, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	if f, err = audit.OpenMarkFile(path); err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[id.Origin]audit.Mark{"log.test/o/red": red, "log.test/o/blue": blue} {
		if got, ok := f.Find(origin); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", origin, got, want)
		}
	}
	if _, ok := f.Find("log.test/o/green"); ok {
		t.Error("there is a mark that nobody noted")
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	for _, text := range []string{"", "{", "[]", `{"o":{"size":-1}}`, `{"o":{"root":"x"}}`, `{"o":{"other":1}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.OpenMarkFile(path); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
