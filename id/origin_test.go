package id_test

import (
	"testing"

	"github.com/agentledger/agentledger/id"
)

func TestOrigin(t *testing.T) {
	const organization = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	for _, c := range []struct {
		origin, first id.Origin
		number        int
		next          id.Origin
		below         string // "": the origin names no organization
	}{
		{"log.example/o/" + organization, "log.example/o/" + organization, 1, "log.example/o/" + organization + "/2", organization},
		{"log.example/o/" + organization + "/2", "log.example/o/" + organization, 2, "log.example/o/" + organization + "/3", organization + "/2"},
		{"log.example/o/" + organization + "/10", "log.example/o/" + organization, 10, "log.example/o/" + organization + "/11", organization + "/10"},
		{"log.example/o/" + organization + "/1", "log.example/o/" + organization + "/1", 1, "log.example/o/" + organization + "/1/2", ""},
		{"log.example/o/" + organization + "/02", "log.example/o/" + organization + "/02", 1, "log.example/o/" + organization + "/02/2", ""},
		{"log.example/o/" + organization + "/2/3", "log.example/o/" + organization + "/2", 3, "log.example/o/" + organization + "/2/4", ""},
		{"log.example/o/" + organization + "/-2", "log.example/o/" + organization + "/-2", 1, "log.example/o/" + organization + "/-2/2", ""},
		{"log.example/o/" + organization + "/99999999999", "log.example/o/" + organization + "/99999999999", 1, "log.example/o/" + organization + "/99999999999/2", ""},
		{"elsewhere", "elsewhere", 1, "elsewhere/2", ""},
	} {
		first, n := c.origin.Split()
		if first != c.first || n != c.number || c.origin.Next() != c.next {
			t.Errorf("%s: got %s, %d, next %s", c.origin, first, n, c.origin.Next())
		}
		o, err := c.origin.Organization()
		if (err == nil) != (c.below != "") || err == nil && c.origin.Below(o) != c.below {
			t.Errorf("%s: got organization %s, %v", c.origin, o, err)
		}
	}
}
