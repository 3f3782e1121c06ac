package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Without a public URL, serve is for this machine only, in a folder of the user, which other commands then find. It says so.
func TestServeThisMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	address, ended := servicetest.FreeAddress(t), make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- runProgram(ctx, []string{"serve", "--listen", address, "--id-listen", "127.0.0.1:0", "--metrics-listen="}, writer, &errs)
		writer.Close()
	}()
	_, port, _ := net.SplitHostPort(address)
	serving, setup := false, false
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		setup = setup || strings.Contains(lines.Text(), "http://localhost:"+port+"/setup#token=")
		if serving = serving || strings.HasPrefix(lines.Text(), "serving "); serving {
			stop()
		}
	}
	stop()
	if status := <-ended; status != 0 || !serving || !setup {
		t.Fatalf("got %d, serving %v, setup %v, %s", status, serving, setup, errs.String())
	}
	if warned := errs.String(); !strings.Contains(warned, "level=WARN") || !strings.Contains(warned, "not for production") ||
		!strings.Contains(warned, "public_url=http://localhost:"+port) || !strings.Contains(warned, "data="+filepath.Join(home, "data", "agentledger")) {
		t.Errorf("got %s", warned)
	}
	if _, err := os.Stat("agentledger-data"); err == nil {
		t.Error("a folder was made in the working directory")
	}
	var out bytes.Buffer
	if status := runProgram(t.Context(), []string{"fsck"}, &out, &errs); status != 0 || out.String() != "0 ledgers, 0 events, 0 faults\n" {
		t.Errorf("fsck: got %d, %s%s", status, out.String(), errs.String())
	}
}

// A public URL is not guessed for a store whose logs have another one, and not for a service that is meant for others.
func TestServeNeedsPublicURL(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var out, errs bytes.Buffer
	if status := runProgram(t.Context(), []string{"init", "--public-url", "https://log.example", "--name", "Red", "--slug", "red",
		"--admin-email", "ops@red.example", "--admin-password", "correct horse battery", "--data", "store"}, &out, &errs); status != 0 {
		t.Fatalf("init: %s", errs.String())
	}
	if err := os.WriteFile("settings.json", []byte(`{"listen": "127.0.0.1:8080"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"a store of another address": {[]string{"serve", "--data", "store", "--listen", servicetest.FreeAddress(t), "--id-listen=127.0.0.1:0", "--metrics-listen="}, "",
			"the logs in this store belong to another public URL than http://localhost:"},
		"all interfaces":      {[]string{"serve", "--listen", ":8080"}, "", "missing flags: --public-url=URL\n"},
		"a settings file":     {[]string{"--config", "settings.json", "serve"}, "", "missing flags: --public-url=URL\n"},
		"a database":          {[]string{"serve", "--storage", "postgres://u@h/d"}, "", "missing flags: --public-url=URL\n"},
		"a misspelled name":   {[]string{"serve"}, "AGENTLEDGER_PUBLIC_ULR", "missing flags: --public-url=URL\n"},
		"an image's variable": {[]string{"serve"}, "AGENTLEDGER_DATA", "missing flags: --public-url=URL\n"},
		"doctor":              {[]string{"doctor", "--listen", ":8080"}, "", "missing flags: --public-url=URL\n"},
		"init":                {[]string{"init", "--name", "Blue", "--slug", "blue", "--admin-email", "ops@blue.example"}, "", "missing flags: --public-url=URL\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.env != "" {
				t.Setenv(tc.env, t.TempDir())
			}
			var out, errs bytes.Buffer
			if status := runProgram(t.Context(), tc.args, &out, &errs); status != exitError || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("got %d, %s", status, errs.String())
			}
		})
	}
}
