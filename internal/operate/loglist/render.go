package loglist

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// Made is one rendered list, in both codings. It is immutable: callers must not modify it.
type Made struct {
	Text, Gzip       []byte
	TextTag, GzipTag string // strong entity tags
	Logs             int
	Keys             []string // vkeys of the logs, ascending
}

const gzipLevel = 1 // higher levels save little, because keys do not compress

// renderList renders the list of all keys: a header, and for each log its vkey, the number of requests in a day and
// the contact, in ascending order of the vkeys, which begin with the origin.
func (l *List) renderList() (*Made, error) {
	end := "\nqpd " + strconv.Itoa(l.PerDay) + "\ncontact " + l.Contact + "\n"
	var text bytes.Buffer
	text.Grow(len(l.keys) * (len("\nvkey ") + usualKey + len(end)))
	text.WriteString("logs/v0\n")
	keys := slices.Sorted(maps.Values(l.keys))
	for _, key := range keys {
		text.WriteString("\nvkey ")
		text.WriteString(key)
		text.WriteString(end)
	}
	m := &Made{Text: text.Bytes(), Logs: len(l.keys), Keys: keys}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzipLevel)
	if err == nil {
		_, err = w.Write(m.Text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("render log list: %w", err)
	}
	m.Gzip = bytes.Clone(packed.Bytes())
	m.TextTag, m.GzipTag = entityTag(m.Text), entityTag(m.Gzip)
	return m, nil
}

const usualKey = 128 // typical length of a vkey in bytes

func entityTag(b []byte) string {
	sum := sha256.Sum256(b)
	return fmt.Sprintf("\"%x\"", sum[:16])
}
