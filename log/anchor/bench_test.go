package anchor_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/anchor"
)

// noteOf returns a text with the form and length of a checkpoint's note. Nothing checks the signatures of the
// journal.
func noteOf(origin string, size int) string {
	root := sha256.Sum256(fmt.Appendf(nil, "%s %d", origin, size))
	return fmt.Sprintf("%s\n%d\n%s\n\n— %s %s\n", origin, size, base64.StdEncoding.EncodeToString(root[:]),
		origin, base64.StdEncoding.EncodeToString(make([]byte, 68)))
}

// writeJournal writes n notes of the given number of origins, in turn.
func writeJournal(tb testing.TB, dir string, origins, n int) (bytes int64) {
	tb.Helper()
	names := make([]string, origins)
	for i := range names {
		names[i] = "log.example/o/" + id.NewOrganization().String()
	}
	f, err := os.Create(filepath.Join(dir, "anchors.journal"))
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		note := noteOf(names[i%origins], 1000+i/origins)
		sum := sha256.Sum256([]byte(note))
		m, _ := fmt.Fprintf(w, "anchor %d %s\n%s", len(note), hex.EncodeToString(sum[:8]), note)
		bytes += int64(m)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return bytes
}

// BenchmarkOpenAnchors opens journals of the maximum length before compaction.
func BenchmarkOpenAnchors(b *testing.B) {
	for _, origins := range []int{300, 100_000, 1_000_000} {
		b.Run(fmt.Sprint("origins=", origins), func(b *testing.B) {
			dir := b.TempDir()
			bytes := writeJournal(b, dir, origins, anchor.LongestJournal(origins))
			for b.Loop() {
				a, err := anchor.Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				if err := a.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(bytes)/(1<<20), "MiB")
		})
	}
}

// BenchmarkFlushAnchors writes what 300 busy organizations write each second, and reports the bytes written per day
// and the maximum length of the journal.
func BenchmarkFlushAnchors(b *testing.B) {
	const busy, day = 300, 24 * 60 * 60
	a, err := anchor.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close() })
	origins := make([]string, busy)
	for i := range origins {
		origins[i] = "log.example/o/" + id.NewOrganization().String()
	}
	notes := make([][]byte, busy)
	written, longest, compactions, second := int64(0), int64(0), 0, 0
	for b.Loop() {
		second++
		before := a.JournalBytes()
		for i := range notes {
			notes[i] = []byte(noteOf(origins[i], second*40))
		}
		if err := a.Put(notes...); err != nil {
			b.Fatal(err)
		}
		longest = max(longest, a.JournalBytes())
		written += a.JournalBytes() - before
		if done, err := a.CompactIfLong(b.Context()); err != nil {
			b.Fatal(err)
		} else if done {
			compactions++
			written += a.JournalBytes()
		}
	}
	b.ReportMetric(float64(written)/float64(second)*day/1e9, "written-GB/day")
	b.ReportMetric(float64(longest)/1e6, "longest-MB")
	b.ReportMetric(float64(compactions)/float64(second)*day, "compactions/day")
}
