package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// doctor reports each store that serve rejects, or whose logs would accept no events, and reports nothing about others.
func TestDoctorAgreesWithServe(t *testing.T) {
	whole := t.TempDir()
	fill(t, whole, 3)
	startProcess(t, whole).terminate() // writes the events into tables
	other := t.TempDir()
	fill(t, other, 1)
	newest := func(t *testing.T, dir, pattern string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		return slices.Max(files)
	}
	truncate := func(pattern string) func(*testing.T, string) error {
		return func(t *testing.T, dir string) error {
			file := newest(t, dir, pattern)
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			return os.Truncate(file, info.Size()/2)
		}
	}
	flip := func(name string) func(*testing.T, string) error {
		return func(t *testing.T, dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			b[len(b)-9] ^= 1
			return os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
	}
	remove := func(pattern string) func(*testing.T, string) error {
		return func(t *testing.T, dir string) error { return os.RemoveAll(newest(t, dir, pattern)) }
	}
	const starts, held, refused = "starts", "starts, and logs take no events", "is refused"
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dir string) error
		serve string
		url   string // default: http://log.test
	}{
		"whole":                   {func(*testing.T, string) error { return nil }, starts, ""},
		"first start":             {func(_ *testing.T, dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) }, starts, ""},
		"no anchors":              {remove("anchors"), held, ""},
		"no anchors journal":      {remove("anchors/anchors.journal"), held, ""},
		"damaged anchors journal": {flip("anchors/anchors.journal"), held, ""},
		"no store beside anchors": {remove("db"), refused, ""},
		"no master key":           {remove("master.key"), refused, ""},
		"another master key": {func(_ *testing.T, dir string) error {
			return replaceFile(filepath.Join(other, "master.key"), filepath.Join(dir, "master.key"))
		}, refused, ""},
		"master key readable by all": {func(_ *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, "master.key"), 0o644) }, refused, ""},
		"no manifest marker":         {remove("db/marker.manifest.*"), refused, ""},
		"no format marker":           {remove("db/marker.format-version.*"), refused, ""},
		"no manifest":                {remove("db/MANIFEST-*"), refused, ""},
		"cut manifest":               {truncate("db/MANIFEST-*"), refused, ""},
		"cut store file":             {truncate("db/agentledger.store"), refused, ""},
		"damaged store file": {func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "db/agentledger.store"), []byte("agentledger-store/1\n"), 0o600)
		}, refused, ""},
		"cut table":        {truncate("db/*.sst"), refused, ""},
		"no table":         {remove("db/*.sst"), refused, ""},
		"not a public URL": {func(*testing.T, string) error { return nil }, refused, "http://log.test/?tenant=1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			err := os.CopyFS(dir, os.DirFS(whole))
			if err == nil { // a copy has ordinary permissions, which are rejected
				err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
					if err != nil || e.IsDir() {
						return errors.Join(err, os.Chmod(path, 0o700))
					}
					return os.Chmod(path, 0o600)
				})
			}
			if err == nil {
				err = tc.spoil(t, dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			url := tc.url
			if url == "" {
				url = "http://log.test"
			}
			flags := []string{"--data", dir, "--public-url", url, "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", ""}
			before := listFolder(t, dir)
			out, _ := command(t, "agentledger", append([]string{"doctor", "--json"}, flags...)...)
			var answer struct {
				Findings []struct {
					Check   string `json:"check"`
					Level   string `json:"level"`
					Summary string `json:"summary"`
				} `json:"findings"`
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var found []string
			for _, f := range answer.Findings {
				if (f.Check == "store" || f.Check == "files" || f.Check == "settings") && f.Level == "attention" {
					found = append(found, f.Summary)
				}
			}
			if (len(found) > 0) != (tc.serve != starts) {
				t.Errorf("doctor found %q, and serve %s", found, tc.serve)
			}
			if text := strings.Join(found, "\n"); strings.HasSuffix(name, " table") && (!strings.Contains(text, ".sst in "+dir) || !strings.Contains(text, "restore the file")) {
				t.Errorf("doctor names neither the file nor the remedy: %q", text)
			}
			if text := strings.Join(found, "\n"); strings.HasSuffix(name, " store file") && (!strings.Contains(text, filepath.Join(dir, "db/agentledger.store")) || !strings.Contains(text, "restore the file")) {
				t.Errorf("doctor names neither the file nor the remedy: %q", text)
			}
			if after := listFolder(t, dir); !slices.Equal(before, after) {
				t.Errorf("doctor changed the data directory from %q to %q", before, after)
			}
			got := starts
			cmd := exec.Command(filepath.Join(programs, "agentledger"), append([]string{"serve"}, flags...)...)
			cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+testSecret)
			p, err := launch(cmd)
			if err != nil {
				got = refused
			} else {
				defer p.kill()
				if name != "first start" && strings.Contains(getText(t, p.main+"/v1/public/orgs/red/transparency/head")+
					getText(t, p.main+"/v1/public/orgs/blue/transparency/head"), `"fault":"read_only"`) {
					got = held
				}
			}
			if got != tc.serve {
				t.Errorf("serve %s, want %s: %v", got, tc.serve, err)
			}
		})
	}
}

// The first start creates the folder of an archive. Once the archive is in use, a start without it is rejected, even if
// no text was moved yet, and even if the folder exists but is empty, like the mount point of a missing volume. Nothing
// is created there.
func TestMissingArchiveFolder(t *testing.T) {
	data, volume := t.TempDir(), t.TempDir()
	kept, away := filepath.Join(volume, "kept"), filepath.Join(volume, "away")
	serve := func(more ...string) (*process, error) {
		t.Helper()
		cmd := exec.Command(filepath.Join(programs, "agentledger"), append([]string{"serve", "--data", data, "--public-url",
			"http://log.test", "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", ""}, more...)...)
		cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+testSecret)
		return launch(cmd)
	}
	starts := func(step string, more ...string) {
		t.Helper()
		p, err := serve(more...)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		p.t = t
		p.terminate()
	}
	archive := []string{"--archive", "file://" + kept}
	doctor := func() string {
		t.Helper()
		out, _ := command(t, "agentledger", append([]string{"doctor", "--json", "--data", data, "--public-url", "http://log.test",
			"--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", ""}, archive...)...)
		return out
	}
	const fault, way = "the service would not start: file://", "Mount the volume of the archive"
	refused := func(step string) {
		t.Helper()
		before := listFolder(t, volume)
		if p, err := serve(archive...); err == nil {
			p.kill()
			t.Errorf("%s: serve starts", step)
		} else if !strings.Contains(err.Error(), kept) || !strings.Contains(err.Error(), way) {
			t.Errorf("%s: serve names neither the folder nor the remedy: %v", step, err)
		}
		if out := doctor(); !strings.Contains(out, fault+kept) || !strings.Contains(out, way) {
			t.Errorf("%s: doctor does not agree: %s", step, out)
		}
		if after := listFolder(t, volume); !slices.Equal(before, after) {
			t.Errorf("%s: the volume changed from %q to %q", step, before, after)
		}
	}
	starts("the first start", archive...)
	if _, err := os.Stat(filepath.Join(kept, "store")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(kept, away); err != nil {
		t.Fatal(err)
	}
	refused("a missing folder")
	if _, err := os.Stat(kept); err == nil {
		t.Error("the folder was created again")
	}
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("an empty folder")
	if err := errors.Join(os.Remove(kept), os.Rename(away, kept)); err != nil {
		t.Fatal(err)
	}
	if out := doctor(); strings.Contains(out, fault) {
		t.Errorf("the folder is back: doctor finds %s", out)
	}
	starts("the folder is back", archive...)
	starts("no archive, because no text was moved")
	archive[1] = "file://" + filepath.Join(volume, "new")
	starts("another folder then", archive...)
}

// listFolder returns the files below a folder with their sizes.
func listFolder(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, path+": "+string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func replaceFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
