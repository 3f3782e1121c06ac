package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
	"github.com/agentledger/agentledger/verify"
)

// writeLogs writes bundles of the logs of two organizations, each with its entry, its tlog-proof and its COSE receipt.
func writeLogs(dir string, s *fakeservice.Service) error {
	for name, of := range map[string]struct {
		organization, index int
		disclosure          id.Disclosure
	}{
		"first.json": {0, 0, id.DiscloseFull}, "full.json": {0, 3, id.DiscloseFull}, "record.json": {0, 4, id.DiscloseRecord},
		"commitment.json": {0, 5, id.DiscloseCommitment}, "other.json": {1, 3, id.DiscloseFull},
	} {
		o := s.Organization(of.organization)
		o.Disclosure = of.disclosure
		b, err := o.Bundle(of.index)
		if err != nil {
			return err
		}
		if err := writeBundle(filepath.Join(dir, name), b); err != nil {
			return err
		}
		receipt, err := o.Receipt(of.index)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".cose"), receipt.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeBundle writes a bundle, its entry and its tlog-proof.
func writeBundle(file string, b *verify.Bundle) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{file: text, file + ".entry": []byte(b.Entry), file + ".tlog-proof": b.TlogProof()} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// filled returns the service with n events in the log of each of two organizations.
func filled(t testing.TB, n int) *fakeservice.Service {
	t.Helper()
	s := fakeservice.Start(t, 2)
	for i := range 2 {
		o := s.Organization(i)
		service, err := client.New(client.Config{BaseURL: s.URL, Token: o.Token})
		if err != nil {
			t.Fatal(err)
		}
		signer, err := client.ParseSigner(client.Identity{Organization: o.ID, Agent: o.Agent, Key: o.Key}, o.Seed)
		if err != nil {
			t.Fatal(err)
		}
		for k := range n {
			envelope, err := signer.SignEvent(client.Event{EventID: id.Event("evt_" + string(rune('a'+k))), ActionKind: "tool_call"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := service.Send(t.Context(), envelope); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// outcome is the result of a command line.
type outcome struct {
	status      int
	out, report string
}

// aps runs a command line as main does.
func aps(t testing.TB, stdin string, args ...string) outcome {
	t.Helper()
	return apsContext(t.Context(), stdin, args...)
}

func apsContext(ctx context.Context, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	status := printError(&stderr, runProgram(ctx, args, strings.NewReader(stdin), &stdout, &stderr))
	return outcome{status, stdout.String(), stderr.String()}
}

// as returns the flags of an organization's agent.
func as(t testing.TB, o *fakeservice.Organization) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.key")
	if err := os.WriteFile(file, []byte(o.Seed+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--org", o.ID.String(), "--agent", string(o.Agent), "--key-id", string(o.Key), "--key-file", file}
}

// at adds the flags of the service with the organization's token.
func at(s *fakeservice.Service, o *fakeservice.Organization, rest ...string) []string {
	return append([]string{"--url", s.URL, "--token", o.Token}, rest...)
}

func with(command string, lists ...[]string) []string {
	args := []string{command}
	for _, list := range lists {
		args = append(args, list...)
	}
	return args
}
