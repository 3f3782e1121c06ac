package releasefiles_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tlog"
)

const (
	sumOfFirst  = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
	sumOfSecond = "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4"
	twoFiles    = sumOfFirst + "  a\n" + sumOfSecond + "  b_1.0.0~rc.1-1_amd64.deb\n"
)

func newKey(t *testing.T) tlog.SignerKey {
	t.Helper()
	key, err := tlog.NewSignerKey(releasefiles.KeyName, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signNote(t *testing.T, key tlog.SignerKey, text string) string {
	t.Helper()
	note, err := key.SignNote(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(note.Bytes())
}

// openFolder creates a directory of files.
func openFolder(t *testing.T, files map[string]string) (*os.Root, string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir, folder
}

func TestParseFiles(t *testing.T) {
	got, err := releasefiles.ParseFiles(twoFiles)
	if err != nil || len(got) != 2 || got[1] != (releasefiles.File{Name: "b_1.0.0~rc.1-1_amd64.deb", SHA256: sumOfSecond}) {
		t.Errorf("got %+v, %v", got, err)
	}
	line := func(name string) string { return sumOfFirst + "  " + name + "\n" }
	for name, bad := range map[string]string{
		"empty":                      "",
		"an empty line":              "\n",
		"no line end":                strings.TrimSuffix(twoFiles, "\n"),
		"windows' line ends":         strings.ReplaceAll(twoFiles, "\n", "\r\n"),
		"one space":                  sumOfFirst + " a\n",
		"binary mode":                sumOfFirst + " *a\n",
		"a short sum":                sumOfFirst[1:] + "  a\n",
		"upper-case digits":          strings.ToUpper(sumOfFirst) + "  a\n",
		"no name":                    line(""),
		"parent folder":              line(".."),
		"a path upwards":             line("../a"),
		"a path upwards behind name": line("a/../../b"),
		"an absolute path":           line("/etc/passwd"),
		"a folder":                   line("a/b"),
		"backslash":                  line(`a\b`),
		"a drive":                    line("C:a"),
		"a stream of NTFS":           line("a:b"),
		"hidden":                     line(".a"),
		"looks like a flag":          line("-a"),
		"a space":                    line("a b"),
		"a zero byte":                line("a\x00"),
		"an escape sequence":         line("a\x1b[2J"),
		"other alphabets":            line("ä"),
		"a long name":                line(strings.Repeat("a", 256)),
		"the list itself":            line(releasefiles.ListName),
		"the note":                   line(releasefiles.NoteName),
		"one file twice":             line("a") + line("a"),
		"another order":              line("b") + line("a"),
		"longer than a note":         strings.Repeat(line(strings.Repeat("a", 255)), 500),
	} {
		if got, err := releasefiles.ParseFiles(bad); !errors.Is(err, releasefiles.ErrWrong) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestReadList(t *testing.T) {
	key := newKey(t)
	note := signNote(t, key, twoFiles)
	for name, c := range map[string]struct {
		files map[string]string
		want  error
	}{
		"list and note":        {map[string]string{releasefiles.ListName: twoFiles, releasefiles.NoteName: note}, nil},
		"note alone":           {map[string]string{releasefiles.NoteName: note}, nil},
		"list alone":           {map[string]string{releasefiles.ListName: twoFiles}, nil},
		"neither":              {nil, fs.ErrNotExist},
		"another list":         {map[string]string{releasefiles.ListName: sumOfFirst + "  a\n", releasefiles.NoteName: note}, releasefiles.ErrWrong},
		"a note without lines": {map[string]string{releasefiles.NoteName: twoFiles}, releasefiles.ErrWrong},
		"a signed other text":  {map[string]string{releasefiles.NoteName: signNote(t, key, "log.example/o\n1\nAAAA\n")}, releasefiles.ErrWrong},
		"a huge list":          {map[string]string{releasefiles.ListName: strings.Repeat("a", tlog.MaxNote+1)}, releasefiles.ErrWrong},
		"a huge note":          {map[string]string{releasefiles.NoteName: strings.Repeat("a", tlog.MaxNote+1)}, releasefiles.ErrWrong},
	} {
		dir, _ := openFolder(t, c.files)
		got, err := releasefiles.ReadList(dir)
		if !errors.Is(err, c.want) || err == nil && len(got.Files) != 2 {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestCheckSignature(t *testing.T) {
	key, other := newKey(t), newKey(t)
	note := signNote(t, key, twoFiles)
	value := note[strings.LastIndex(note, " ")+1:]
	forged := strings.Replace(note, value, value[:20]+"AAAA"+value[24:], 1)
	for name, c := range map[string]struct {
		files map[string]string
		key   tlog.SignerKey
		want  error
	}{
		"signed":              {map[string]string{releasefiles.NoteName: note}, key, nil},
		"not signed":          {map[string]string{releasefiles.ListName: twoFiles}, key, releasefiles.ErrUnsigned},
		"another key":         {map[string]string{releasefiles.NoteName: note}, other, releasefiles.ErrOtherKey},
		"a changed signature": {map[string]string{releasefiles.NoteName: forged}, key, releasefiles.ErrWrong},
		"a changed list": {map[string]string{releasefiles.NoteName: strings.Replace(note, sumOfFirst, sumOfSecond, 1)}, key,
			releasefiles.ErrWrong},
	} {
		dir, _ := openFolder(t, c.files)
		list, err := releasefiles.ReadList(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := list.CheckSignature(c.key.Verifier()); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestCheckFile(t *testing.T) {
	dir, folder := openFolder(t, map[string]string{"a": "first", "changed": "firsT"})
	if err := os.Symlink(filepath.Join(folder, "a"), filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"a": nil, "changed": releasefiles.ErrWrong, "missing": releasefiles.ErrWrong,
		"link": releasefiles.ErrWrong, "pipe": releasefiles.ErrWrong, "folder": releasefiles.ErrWrong} {
		if err := (releasefiles.File{Name: name, SHA256: sumOfFirst}).Check(t.Context(), dir); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := releasefiles.Sum(ctx, dir, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: got %v", err)
	}
}

// No list names a file outside of the directory, and an accepted list is written as it was read.
func FuzzParseFiles(f *testing.F) {
	f.Add(twoFiles)
	f.Add(sumOfFirst + "  ../a\n")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := releasefiles.ParseFiles(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, file := range files {
			if filepath.Base(file.Name) != file.Name || !filepath.IsLocal(file.Name) {
				t.Errorf("leads elsewhere: %q", file.Name)
			}
			again.WriteString(file.SHA256 + "  " + file.Name + "\n")
		}
		if again.String() != text {
			t.Errorf("got %q, want %q", again.String(), text)
		}
	})
}
