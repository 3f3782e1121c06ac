package pack_test

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/pack"
)

// check checks a pack with the log's key.
func check(b []byte, key tlog.VerifierKey) (pack.Report, error) {
	return pack.Check(bytes.NewReader(b), int64(len(b)), pack.Options{
		OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) }})
}

// isWrong reports whether an error means that a pack is not proved.
func isWrong(err error) bool {
	for _, kind := range []error{verify.ErrMalformed, verify.ErrMismatch, verify.ErrVersion, tlog.ErrMalformed, tlog.ErrProof,
		tlog.ErrSignature} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

func TestSamples(t *testing.T) {
	l := packtest.NewSampleLog(t)
	for _, s := range packtest.Samples(t, l) {
		r, err := check(s.Parts.Bytes(t), l.Key())
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		got := [5]uint64{uint64(r.Begin), uint64(r.End), r.Shown, r.Withheld, r.Erased}
		want := [5]uint64{uint64(s.Begin), uint64(s.End), s.Shown, s.Withheld, s.Erased}
		if got != want || r.LogKeySource != verify.KeyFromArgument {
			t.Errorf("%s: got %v from %s, want %v", s.Name, got, r.LogKeySource, want)
		}
		b := s.Parts.Bytes(t)
		own, err := pack.Check(bytes.NewReader(b), int64(len(b)), pack.Options{})
		if err != nil || own.LogKeySource != verify.KeyFromBundle || own.ManifestSHA256 != r.ManifestSHA256 {
			t.Errorf("%s, by its own keys: got %+v, %v", s.Name, own, err)
		}
	}
}

// A change of any byte of a file is detected. A change of the container is detected, or the files are the same.
func TestEachByteIsChecked(t *testing.T) {
	l := packtest.NewSampleLog(t)
	p := packtest.Samples(t, l)[2].Parts
	b := p.Bytes(t)
	isContent, at := make([]bool, len(b)), 0
	for _, f := range p.Contents(t) {
		at += 30 + len(f.Name)
		for range len(f.Content) {
			isContent[at] = true
			at++
		}
		at += 16
	}
	for i := range b {
		for _, flip := range []byte{1, 0x20, 0x80} {
			b[i] ^= flip
			_, err := check(b, l.Key())
			if isContent[i] && !isWrong(err) || err != nil && !isWrong(err) && !errors.Is(err, pack.ErrContainer) {
				t.Errorf("byte %d of %d flipped by %#x: got %v", i, len(b), flip, err)
			}
			b[i] ^= flip
		}
		if _, err := check(b[:i], l.Key()); !errors.Is(err, pack.ErrContainer) {
			t.Errorf("cut at %d: got %v", i, err)
		}
	}
	if _, err := check(b, l.Key()); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// A pack is not accepted for another log or for another key with the same name.
func TestPinnedKeyCounts(t *testing.T) {
	l := packtest.NewSampleLog(t)
	b := packtest.Samples(t, l)[0].Parts.Bytes(t)
	other := packtest.OtherKey(t)
	if r, err := check(b, other); !errors.Is(err, tlog.ErrSignature) {
		t.Errorf("got %+v, %v", r, err)
	}
}

var errDisk = errors.New("disk")

// broken fails to read at and after an offset.
type broken struct {
	*bytes.Reader
	from int64
}

func (b broken) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return b.Reader.ReadAt(p, offset)
}

// A pack that cannot be read is not reported as wrong.
func TestUnreadableIsNotWrong(t *testing.T) {
	l := packtest.NewSampleLog(t)
	b := packtest.Samples(t, l)[0].Parts.Bytes(t)
	for from := 0; from < len(b); from += 97 {
		_, err := pack.Check(broken{bytes.NewReader(b), int64(from)}, int64(len(b)), pack.Options{})
		if !errors.Is(err, errDisk) || isWrong(err) {
			t.Errorf("unreadable from %d: got %v", from, err)
		}
	}
}

// No input makes the check panic, and an accepted pack accounts for its range.
func FuzzCheck(f *testing.F) {
	l := packtest.NewSampleLog(f)
	for _, s := range packtest.Samples(f, l) {
		f.Add(s.Parts.Bytes(f))
	}
	f.Add(packtest.ActSamples(f)[0].Parts.Bytes(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := check(b, l.Key())
		if err == nil && r.Shown+r.Withheld != uint64(r.End-r.Begin) {
			t.Errorf("accepted: %+v", r)
		}
	})
}

// A false pack is rejected although all of its digests are correct.
func TestChangedPacksAreRefused(t *testing.T) {
	l := packtest.NewSampleLog(t)
	for _, w := range packtest.Changed(t, l) {
		if r, err := check(w.Bytes, l.Key()); isWrong(err) == w.Unreadable || errors.Is(err, pack.ErrContainer) != w.Unreadable {
			t.Errorf("%s: got %+v, %v", w.Name, r, err)
		}
	}
	for _, s := range packtest.Samples(t, l) {
		if _, err := check(s.Parts.Bytes(t), l.Key()); err != nil {
			t.Errorf("%s, unchanged: %v", s.Name, err)
		}
	}
}

// A line that is removed, doubled, changed or moved is detected by the digests, in every file.
func TestEachLineCounts(t *testing.T) {
	l := packtest.NewSampleLog(t)
	for _, name := range []string{pack.FileRecords, pack.FileEnvelopes, pack.FileApprovals, pack.FileErasures} {
		whole := packtest.Samples(t, l)[0].Parts
		original := *whole.File(name)
		whole.Bytes(t) // computes the digests
		manifest, err := whole.Manifest.Text()
		if err != nil {
			t.Fatal(err)
		}
		lines := packtest.Lines(original)
		for i := range lines {
			without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
			for what, text := range map[string]string{
				"removed": without, "moved to the end": without + lines[i], "doubled": strings.Join(slices.Insert(slices.Clone(lines), i, lines[i]), ""),
				"emptied": strings.Replace(original, lines[i], "\n", 1),
			} {
				*whole.File(name) = text
				whole.Text = string(manifest)
				if _, err := check(whole.Bytes(t), l.Key()); text != original && !isWrong(err) {
					t.Errorf("line %d of %s %s: got %v", i+1, name, what, err)
				}
			}
		}
	}
}

// Only the files of a pack count, not how they were packed. A container that cannot be read proves nothing wrong.
func TestContainers(t *testing.T) {
	l := packtest.NewSampleLog(t)
	for i, s := range packtest.Samples(t, l) {
		want, err := check(s.Parts.Bytes(t), l.Key())
		if err != nil {
			t.Fatal(err)
		}
		compare := func(name string, got pack.Report, err error) {
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %+v, %v, want %+v", s.Name, name, got, err, want)
			}
		}
		open := pack.Options{OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, l.Key()) }}
		got, err := pack.CheckFolder(s.Parts.Folder(t), open)
		compare("a folder", got, err)
		dir := s.Parts.Folder(t)
		dir[".DS_Store"], dir["__MACOSX/._policy"] = &fstest.MapFile{}, &fstest.MapFile{}
		got, err = pack.CheckFolder(dir, open)
		compare("a folder with files of an operating system", got, err)
		right, unreadable := packtest.Packed(t, s.Parts)
		for _, w := range right {
			got, err := check(w.Bytes, l.Key())
			compare(w.Name, got, err)
		}
		for _, w := range unreadable {
			if got, err := check(w.Bytes, l.Key()); !errors.Is(err, pack.ErrContainer) || isWrong(err) {
				t.Errorf("%s, %s: got %+v, %v", s.Name, w.Name, got, err)
			}
		}
		for name, dir := range packtest.BadFolders(t, s.Parts) {
			if got, err := pack.CheckFolder(dir, open); !errors.Is(err, pack.ErrContainer) || isWrong(err) {
				t.Errorf("%s, a folder with %s: got %+v, %v", s.Name, name, got, err)
			}
		}
		changed := s.Parts.Folder(t)
		changed[pack.FileReport].Data = append(changed[pack.FileReport].Data, ' ')
		if _, err := pack.CheckFolder(changed, open); !isWrong(err) {
			t.Errorf("%d: a changed file in a folder: got %v", i, err)
		}
	}
}

// A folder that cannot be read is not reported as wrong.
func TestUnreadableFolder(t *testing.T) {
	l := packtest.NewSampleLog(t)
	_, err := pack.CheckFolder(brokenFS{packtest.Samples(t, l)[0].Parts.Folder(t)}, pack.Options{})
	if !errors.Is(err, errDisk) || isWrong(err) || errors.Is(err, pack.ErrContainer) {
		t.Errorf("got %v", err)
	}
}

// brokenFS lists its files but fails to open them.
type brokenFS struct{ fstest.MapFS }

func (b brokenFS) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "json") {
		return nil, errDisk
	}
	return b.MapFS.Open(name)
}
