package image_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/agentledger/agentledger/tools/release/image"
)

func write(t *testing.T, programs ...string) (file string) {
	t.Helper()
	dir := t.TempDir()
	var all []image.Program
	for i, text := range programs {
		name := filepath.Join(dir, text)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, image.Program{Arch: []string{"amd64", "arm64"}[i], File: name})
	}
	file = filepath.Join(dir, "image.tar")
	d := image.Description{Version: "1.2.3", Commit: "0123456789abcdef0123456789abcdef01234567", Time: time.Unix(1_795_000_000, 0).UTC()}
	if err := image.Write(file, d, all); err != nil {
		t.Fatal(err)
	}
	return file
}

// An image contains the program of its architecture, certificates, and a folder for a user who is not root.
func TestImage(t *testing.T) {
	file := write(t, "for-amd64", "for-arm64")
	for _, arch := range []string{"amd64", "arm64"} {
		dir := t.TempDir()
		c, err := image.Unpack(file, arch, dir)
		want := image.Config{User: "65532:65532", Entrypoint: []string{"/usr/bin/agentledger"}, Cmd: []string{"serve"},
			Env: []string{"PATH=/usr/bin", "AGENTLEDGER_DATA=/var/lib/agentledger"}}
		if err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("%s: got %+v, %v", arch, c, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "usr/bin/agentledger")); err != nil || string(got) != "for-"+arch {
			t.Errorf("%s: the program is %q, %v", arch, got, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "usr/bin/agentledger")); err != nil || info.Mode() != 0o755 {
			t.Fatalf("%s: the program is %v, %v", arch, info, err)
		}
		roots, err := os.ReadFile(filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"))
		if pool := x509.NewCertPool(); err != nil || !pool.AppendCertsFromPEM(roots) || bytes.Count(roots, []byte("BEGIN CERT")) < 100 {
			t.Errorf("%s: %d bytes of certificates, %v", arch, len(roots), err)
		}
		for rest := roots; len(rest) > 0; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				t.Error(err)
			}
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "var/lib/agentledger")); err != nil || len(entries) > 0 {
			t.Errorf("%s: the data folder has %v, %v", arch, entries, err)
		}
	}
	if _, err := image.Unpack(file, "riscv64", t.TempDir()); err == nil {
		t.Error("got an image for an architecture that was not built")
	}
}

// The same programs give the same bytes, and a changed byte is detected.
func TestBytes(t *testing.T) {
	one, err := os.ReadFile(write(t, "p"))
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(write(t, "p")); err != nil || !bytes.Equal(one, other) {
		t.Errorf("two images differ, %v", err)
	}
	at := bytes.Index(one, []byte{0x1f, 0x8b}) + 100
	one[at] ^= 1
	file := filepath.Join(t.TempDir(), "bent.tar")
	if err := os.WriteFile(file, one, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := image.Unpack(file, "amd64", t.TempDir()); err == nil {
		t.Error("a changed layer was accepted")
	}
}
