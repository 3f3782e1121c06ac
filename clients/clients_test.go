package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readTarGz(t *testing.T, content []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for r := tar.NewReader(unpacked); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag == tar.TypeReg {
			files[head.Name] = string(text)
		}
	}
}

func readZip(t *testing.T, content []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, f := range r.File {
		text, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

// take removes a file and returns its content.
func take(files map[string]string, name string) string {
	text := files[name]
	delete(files, name)
	return text
}

func wantSame(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range maps.Keys(got) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is in our package only", name)
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: missing in our package, or different there", name)
		}
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestSameFilesAsNPMPack(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("typescript")
	if err != nil {
		t.Fatal(err)
	}
	folder, p := t.TempDir(), Read().Find(NPM)
	run(t, folder, "npm", "pack", "--silent", source)
	wantSame(t, readTarGz(t, p.Content), readTarGz(t, readFile(t, filepath.Join(folder, p.File))))
}

// headers returns the headers of core metadata, sorted, in the spelling that all versions of setuptools share, and the
// description.
func headers(text string) (names []string, description string) {
	head, description, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(head) {
		line = strings.NewReplacer("(", "", ")", "", " ", "", "'", `"`, "\n", "").Replace(line)
		if key, _, _ := strings.Cut(line, ":"); key != "Metadata-Version" && key != "Dynamic" {
			names = append(names, line)
		}
	}
	slices.Sort(names)
	return names, description
}

// wantSameMetadata compares core metadata without some headers.
func wantSameMetadata(t *testing.T, got, want string, without ...string) {
	t.Helper()
	for _, begin := range without {
		got, want = withoutLine(got, begin), withoutLine(want, begin)
	}
	ours, description := headers(got)
	theirs, expected := headers(want)
	if !slices.Equal(ours, theirs) || description != expected {
		t.Errorf("python/METADATA is out of date: got %q, want %q", ours, theirs)
	}
}

func TestSameFilesAsSetuptools(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() // setuptools writes to the folder that it builds
	err := filepath.WalkDir("python/src/agentledger", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".pyc") {
			return err
		}
		return copyFile(folder, name)
	})
	for _, name := range []string{"python/README.md", "python/pyproject.toml"} {
		err = errors.Join(err, copyFile(folder, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	interpreter, err := filepath.Abs("python/interpreter")
	if err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(folder, "python"), interpreter, "-c",
		"import setuptools.build_meta as b; b.build_sdist('..'); b.build_wheel('..')")

	p := Read().Find(Wheel)
	about := p.Name + "-" + p.Version + ".dist-info/"
	got, want := readZip(t, p.Content), readZip(t, readFile(t, filepath.Join(folder, p.File)))
	wantSameMetadata(t, take(got, about+"METADATA"), take(want, about+"METADATA"))
	for _, files := range []map[string]string{got, want} { // they differ in the generator and the spelling of the metadata
		files[about+"WHEEL"] = withoutLine(files[about+"WHEEL"], "Generator")
		for _, name := range []string{"METADATA", "WHEEL"} {
			files[about+"RECORD"] = withoutLine(files[about+"RECORD"], about+name)
		}
		lines := strings.SplitAfter(files[about+"RECORD"], "\n")
		slices.Sort(lines)
		files[about+"RECORD"] = strings.Join(lines, "")
	}
	wantSame(t, got, want)

	p = Read().Find(Sdist)
	root := p.Name + "-" + p.Version + "/"
	got, want = readTarGz(t, p.Content), readTarGz(t, readFile(t, filepath.Join(folder, p.File)))
	wantSameMetadata(t, take(got, root+"PKG-INFO"), take(want, root+"PKG-INFO"), "Requires-Dist") // older setuptools leaves these out
	for name := range want {                                                                      // files that setuptools writes again at the next build
		if name == root+"setup.cfg" || strings.Contains(name, ".egg-info/") {
			delete(want, name)
		}
	}
	wantSame(t, got, want)
}

func copyFile(folder, name string) error {
	target := filepath.Join(folder, name)
	content, err := os.ReadFile(name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o700)
	}
	if err == nil {
		err = os.WriteFile(target, content, 0o600)
	}
	return err
}

// withoutLine removes the lines that begin with a text.
func withoutLine(text, begin string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(line string) bool { return strings.HasPrefix(line, begin) })
	return strings.Join(lines, "")
}

// A README names the package that contains it, and its links lead somewhere outside of the repository too. The client
// for Python states the version of its package.
func TestReadmes(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{NPM, Wheel} {
		p := Read().Find(kind)
		name := map[Kind]string{NPM: "typescript/README.md", Wheel: "python/README.md"}[kind]
		readme := string(readFile(t, name))
		if !strings.Contains(readme, `"$APS_URL/clients/`+p.File+`"`) || strings.Contains(readme, "](..") {
			t.Errorf("%s does not install %s, or has a relative link", name, p.File)
		}
	}
	text, version := readFile(t, "python/src/agentledger/__init__.py"), Read().Find(Wheel).Version
	if !bytes.Contains(text, []byte(`__version__ = "`+version+`"`)) {
		t.Errorf("the version of the package is %s, that of __init__.py is not", version)
	}
}

// Two builds have the same bytes, and a note counts only for these bytes.
func TestNote(t *testing.T) {
	t.Parallel()
	set := Read()
	if set.Note != nil {
		t.Error("this program is not a release, and has a note")
	}
	signed := set.Sums + "\n— a signature\n"
	if got := read(base64.StdEncoding.EncodeToString([]byte(signed))); string(got.Note) != signed {
		t.Errorf("got the note %q", got.Note)
	}
	for _, other := range []string{"x" + signed, set.Sums, "", "\n"} {
		if got := read(base64.StdEncoding.EncodeToString([]byte(other))); got.Note != nil || got.Sums != set.Sums {
			t.Errorf("%q: got the note %q of %s", other, got.Note, got.Sums)
		}
	}
}
