package config

import (
	"strings"
	"testing"
)

func TestValidateNode(t *testing.T) {
	const database, listen, url = "postgres://db/ledger", ":8092", "https://10.1.0.7:8092"
	tests := []struct {
		name, storage, listen, url string
		readOnly                   bool
		want                       string // part of the error, or "" for success
	}{
		{"no node", "", "", "", false, ""},
		{"a node", database, listen, url, false, ""},
		{"a host with a name", database, listen, "https://node-1.internal:8092", false, ""},
		{"no URL", database, listen, "", false, "must be set together"},
		{"no address", database, "", url, false, "must be set together"},
		{"the embedded store", "", listen, url, false, "need one database"},
		{"read-only", database, listen, url, true, "not allowed with --read-only"},
		{"a socket", database, "unix:/run/node", url, false, "cannot reach a Unix socket"},
		{"http", database, listen, "http://10.1.0.7:8092", false, "must be https"},
		{"a path", database, listen, url + "/nodes", false, "must be https"},
		{"a slash", database, listen, url + "/", false, "must be https"},
		{"a query", database, listen, url + "?a=b", false, "must be https"},
		{"a user", database, listen, "https://a:b@10.1.0.7", false, "must be https"},
		{"no host", database, listen, "https://", false, "must be https"},
		{"no URL at all", database, listen, "::", false, "must be https"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s Serve
			s.Storage, s.NodeListen, s.NodeURL, s.ReadOnly = test.storage, test.listen, test.url, test.readOnly
			err := s.validateNode()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
