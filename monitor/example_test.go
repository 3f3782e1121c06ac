package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/monitor"
	"github.com/agentledger/agentledger/tlog"
)

// exampleLog returns the files of a log with one entry.
func exampleLog(signer tlog.SignerKey, record id.Hash) (map[string][]byte, error) {
	origin := id.Origin(signer.Verifier().Name())
	entry := event.Entry{Prev: event.Genesis(origin), Record: record, Seq: 1}
	leaf := entry.Hash()
	var tree tlog.Builder
	tree.Append(nil, leaf)
	checkpoint, err := signer.Sign(tlog.Checkpoint{Origin: origin, Size: 1, Root: tree.Root()})
	if err != nil {
		return nil, err
	}
	entries, err := tlog.EntryBundle(entry.Text())
	return map[string][]byte{
		"/checkpoint":                      checkpoint,
		"/" + tlog.Tile{Width: 1}.Path():   leaf[:],
		"/" + tlog.Bundle{Width: 1}.Path(): entries,
	}, err
}

// A monitor accepts a log that only grows, and detects another history under the same key.
func Example() {
	signer, err := tlog.NewSignerKey("log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", edkey.NewPrivate())
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := exampleLog(signer, id.Hash{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(files[r.URL.Path]) }))
	defer server.Close()
	folder, err := os.MkdirTemp("", "monitor-") // in production: a permanent folder
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	log, err := client.OpenTiles(client.Config{BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := monitor.New(monitor.Options{
		Log: log, Keys: []tlog.VerifierKey{signer.Verifier()}, State: filepath.Join(folder, "state"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := m.Check(context.Background())
	fmt.Println(report.TreeSize, report.NewEntries, err)

	if files, err = exampleLog(signer, id.Hash{2}); err != nil { // the operator rewrites history
		fmt.Println(err)
		return
	}
	_, err = m.Check(context.Background())
	var finding *monitor.Finding
	fmt.Println(errors.As(err, &finding), finding.Kind)
	// Output:
	// 1 1 <nil>
	// true fork
}
