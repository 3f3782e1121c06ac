package anchor_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/tlog"
)

const (
	redOrigin  id.Origin = "log.test/o/red"
	blueOrigin id.Origin = "log.test/o/blue"
)

func openFolder(t *testing.T) *anchor.Folder {
	t.Helper()
	f, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func note(o id.Origin, size int) []byte { return []byte(noteOf(string(o), size)) }

func put(t *testing.T, f *anchor.Folder, notes ...[]byte) {
	t.Helper()
	if err := f.Put(notes...); err != nil {
		t.Fatal(err)
	}
}

// texts returns the notes, ordered by text.
func texts(notes []anchor.Note) []string {
	all := make([]string, len(notes))
	for i, n := range notes {
		all[i] = fmt.Sprint(n.Slug, string(n.Text))
	}
	slices.Sort(all)
	return all
}

// allNotes returns the notes of a folder without duplicates.
func allNotes(t *testing.T, f *anchor.Folder) []string {
	t.Helper()
	seen := map[string]bool{}
	for n, err := range f.Notes() {
		if err != nil {
			t.Fatal(err)
		}
		seen[texts([]anchor.Note{n})[0]] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func checkSizes(t *testing.T, f *anchor.Folder, red, blue int) {
	t.Helper()
	for origin, want := range map[id.Origin]int{redOrigin: red, blueOrigin: blue} {
		if size, ok := f.Size(origin); ok != (want >= 0) || want >= 0 && int(size) != want {
			t.Errorf("%s: got %d, %v; want %d", origin, size, ok, want)
		}
	}
}

func TestFollowerGetsTheNewestNotes(t *testing.T) {
	f := openFolder(t)
	put(t, f, note(redOrigin, 1))
	w := f.Follow()
	if notes, missed := w.Take(); len(notes) > 0 || missed {
		t.Errorf("before: got %v, %v", texts(notes), missed)
	}
	put(t, f, note(redOrigin, 2), note(blueOrigin, 7))
	put(t, f, note(redOrigin, 4))
	put(t, f, note(redOrigin, 3)) // of a ledger that was read again
	if err := f.KeepSlug("red", redOrigin); err != nil {
		t.Fatal(err)
	}
	<-w.Ready()
	notes, missed := w.Take()
	want := texts([]anchor.Note{{Text: note(redOrigin, 4)}, {Text: note(blueOrigin, 7)}, {Slug: true, Text: []byte("red\n" + redOrigin + "\n")}})
	if got := texts(notes); !slices.Equal(got, want) || missed || !notes[0].Slug {
		t.Errorf("got %q, %v, want %q", got, missed, want)
	}
	w.Close()
	put(t, f, note(redOrigin, 9))
	if notes, _ := w.Take(); len(notes) > 0 {
		t.Errorf("after the end: got %v", texts(notes))
	}
}

func TestSlowFollowerMisses(t *testing.T) {
	f := openFolder(t)
	w := f.Follow()
	anchor.LimitFollower(w, 2)
	put(t, f, note(redOrigin, 1), note(blueOrigin, 1), note("log.test/o/third", 1), note(redOrigin, 2))
	notes, missed := w.Take()
	if got, want := texts(notes), texts([]anchor.Note{{Text: note(redOrigin, 2)}, {Text: note(blueOrigin, 1)}}); !missed || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, missed, want)
	}
	if notes, missed := w.Take(); missed || len(notes) > 0 {
		t.Errorf("again: got %v, %v", texts(notes), missed)
	}
}

func TestFollowerOfAFolderThatFails(t *testing.T) {
	dir := t.TempDir()
	f, err := anchor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w := f.Follow()
	if err := os.Remove(filepath.Join(dir, "anchors.journal")); err != nil {
		t.Fatal(err)
	}
	if err := f.Put(note(redOrigin, 1)); err == nil {
		t.Error("a note was written nowhere")
	}
	if notes, _ := w.Take(); len(notes) > 0 {
		t.Errorf("a note that is not durable was given on: %v", texts(notes))
	}
	for _, err := range f.Notes() {
		if err == nil {
			t.Error("notes of a journal that is gone")
		}
	}
}

func TestReceive(t *testing.T) {
	dir := t.TempDir()
	f, err := anchor.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	put(t, f, note(redOrigin, 5))
	w := f.Follow()
	notes := []anchor.Note{
		{Text: note(redOrigin, 4)}, {Text: note(redOrigin, 5)}, {Text: note(redOrigin, 6)}, {Text: note(blueOrigin, 0)},
		{Slug: true, Text: []byte("blue\n" + blueOrigin + "\n")},
	}
	notes[3].Text = bytes.Replace(notes[3].Text, bytes.Split(notes[3].Text, []byte("\n"))[2], []byte("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="), 1)
	differs, err := f.Receive(notes)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []id.Index
	for _, c := range differs {
		sizes = append(sizes, c.Size)
	}
	if want := []id.Index{4, 6, 0}; !slices.Equal(sizes, want) {
		t.Errorf("differs: got %v, want %v", sizes, want)
	}
	checkSizes(t, f, 6, 0)
	if !f.SlugTaken("blue", redOrigin) || f.SlugTaken("blue", blueOrigin) {
		t.Error("the slug is not kept")
	}
	if notes, _ := w.Take(); len(notes) > 0 {
		t.Errorf("received notes were given on: %v", texts(notes))
	}
	before := f.JournalBytes()
	if differs, err = f.Receive(notes[1:]); err != nil || len(differs) != 1 || f.JournalBytes() != before {
		t.Errorf("again: got %v, %v, %d bytes more", differs, err, f.JournalBytes()-before)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = anchor.Open(dir); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checkSizes(t, f, 6, 0)
}

// A different root at the same size is reported, and the node's own anchor stays.
func TestReceiveAFork(t *testing.T) {
	f := openFolder(t)
	put(t, f, note(redOrigin, 5))
	want, _ := f.Find(redOrigin)
	fork := bytes.Replace(note(redOrigin, 6), []byte("\n6\n"), []byte("\n5\n"), 1)
	differs, err := f.Receive([]anchor.Note{{Text: fork}})
	if got, _ := f.Find(redOrigin); err != nil || len(differs) != 1 || differs[0].Root == want.Root || got != want {
		t.Errorf("got %v, %v and anchor %v, want %v", differs, err, got, want)
	}
}

func TestReceiveRefusesMalformedNotes(t *testing.T) {
	whole := string(note(redOrigin, 5))
	for name, n := range map[string]anchor.Note{
		"empty":                  {},
		"text":                   {Text: []byte("hello")},
		"no signature":           {Text: []byte(whole[:strings.Index(whole, "— ")])},
		"cut off":                {Text: []byte(whole[:len(whole)-9])},
		"signed by another name": {Text: []byte(strings.Replace(whole, "— "+string(redOrigin), "— "+string(blueOrigin), 1))},
		"leading zero":           {Text: []byte(strings.Replace(whole, "\n5\n", "\n05\n", 1))},
		"negative size":          {Text: []byte(strings.Replace(whole, "\n5\n", "\n-5\n", 1))},
		"short root":             {Text: []byte(strings.Replace(whole, "=\n\n", "\n\n", 1))},
		"too long":               {Text: []byte(whole + strings.Repeat("— x AAAAAAAA\n", 8000))},
		"slug of one line":       {Slug: true, Text: []byte("red\n")},
		"slug of three lines":    {Slug: true, Text: []byte("red\nlog.test/o/red\nmore\n")},
		"slug of a successor":    {Slug: true, Text: []byte("red\nlog.test/o/red/2\n")},
		"slug that is too long":  {Slug: true, Text: []byte(strings.Repeat("x", 70_000) + "\nlog.test/o/red\n")},
	} {
		t.Run(name, func(t *testing.T) {
			f := openFolder(t)
			_, err := f.Receive([]anchor.Note{{Text: note(blueOrigin, 3)}, n})
			if !errors.Is(err, tlog.ErrMalformed) {
				t.Errorf("got %v", err)
			}
			checkSizes(t, f, -1, -1)
		})
	}
}

// The slug belongs to the organization that was founded, in whatever order the notes arrive.
func TestReceivedSlugOfAnotherOrganization(t *testing.T) {
	f := openFolder(t)
	put(t, f, note(redOrigin, 5))
	if err := f.KeepSlug("name", redOrigin); err != nil {
		t.Fatal(err)
	}
	other := []anchor.Note{{Slug: true, Text: []byte("name\n" + blueOrigin + "\n")}, {Text: note(blueOrigin, 1)}}
	if _, err := f.Receive(other); err != nil {
		t.Fatal(err)
	}
	if f.SlugTaken("name", redOrigin) || !f.SlugTaken("name", blueOrigin) {
		t.Error("the slug of a founded organization was given away")
	}
}

func TestNotes(t *testing.T) {
	f := openFolder(t)
	for size := range 50 {
		put(t, f, note(redOrigin, size+1), note(blueOrigin, 2*size+1))
	}
	if err := errors.Join(f.KeepSlug("red", redOrigin), f.KeepSlug("blue", blueOrigin)); err != nil {
		t.Fatal(err)
	}
	want := texts([]anchor.Note{
		{Text: note(redOrigin, 50)}, {Text: note(blueOrigin, 99)},
		{Slug: true, Text: []byte("red\n" + redOrigin + "\n")}, {Slug: true, Text: []byte("blue\n" + blueOrigin + "\n")},
	})
	if got := allNotes(t, f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for n, err := range f.Notes() { // while the journal is compacted and grows
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) == 0 {
			if err := f.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		put(t, f, note("log.test/o/third", len(seen)+1))
		seen[texts([]anchor.Note{n})[0]] = true
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("while it is compacted: got %q, want %q", got, want)
	}
	fresh := openFolder(t)
	var sent []anchor.Note
	for n := range f.Notes() {
		sent = append(sent, n)
	}
	if _, err := fresh.Receive(sent); err != nil {
		t.Fatal(err)
	}
	if got, want := allNotes(t, fresh), allNotes(t, f); !slices.Equal(got, want) {
		t.Errorf("in the other folder: got %q, want %q", got, want)
	}
	for range f.Notes() {
		break // a reader may stop
	}
}
