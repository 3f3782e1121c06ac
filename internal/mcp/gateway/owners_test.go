package gateway

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
)

// What a session remembers of a server's lists is bounded in number and size, and lists of known names still work.
func TestListsAreBounded(t *testing.T) {
	for member, most := range map[string]int{"uri": maxOwned, "uriTemplate": maxTemplates} {
		o, l := newOwners(), &link{name: "files"}
		entry := func(name string) map[string]jsontext.Value {
			return map[string]jsontext.Value{member: jsontext.Value(strconv.Quote(name))}
		}
		for i := range most {
			if err := o.addListed(l, entry("file:///"+strconv.Itoa(i))); err != nil {
				t.Fatalf("%s %d: %v", member, i, err)
			}
		}
		if err := o.addListed(l, entry("file:///0")); err != nil {
			t.Errorf("%s: a known name: %v", member, err)
		}
		if err := o.addListed(l, entry("file:///more")); err == nil {
			t.Errorf("%s: more than %d were accepted", member, most)
		}
		if err := newOwners().addListed(l, entry("file:///"+strings.Repeat("a", maxName))); err == nil {
			t.Errorf("%s: a long name was accepted", member)
		}
	}
}

// A server that changes its tools again and again cannot fill the ledger.
func TestChangesAreBounded(t *testing.T) {
	pins, err := OpenPins(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const tool = "mcp.files.read"
	if err := pins.keep(tool, sha256.Sum256([]byte("before"))); err != nil {
		t.Fatal(err)
	}
	s := &session{gate: &Gateway{Config: Config{Pins: pins}}, changed: maxChanges, changes: map[id.Tool]id.Hash{},
		definitions: map[id.Tool]id.Hash{tool: sha256.Sum256([]byte("after"))}}
	if err := s.checkDefinition(t.Context(), tool, true); !errors.Is(err, errManyChanges) {
		t.Errorf("got %v", err)
	}
}
