package console

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/agentledger/agentledger/web/page"
)

// Limits of a comparison.
const (
	maxCompared = 50_000 // lines of a version
	maxShown    = 4_000  // lines of the difference
)

// compareView is the content of the page that compares two versions.
type compareView struct {
	PolicyID       string
	Before, After  version
	Names          names
	Hunks          []hunk
	Added, Removed int // lines
	Left           int // lines after maxShown
	TooLong        bool
}

// hunk is a run of lines in which two versions differ, with context lines.
type hunk struct {
	Before, After int // numbers of the first lines
	Lines         []line
}

// line is a line of a difference. Mark is + if it was added, - if it was removed, or a space.
type line struct{ Mark, Text string }

// showComparison compares two versions: by default the version that is shown and its predecessor.
func (p *pages) showComparison(r *page.Request) (any, error) {
	after, err := readVersion(r, r.Query("to"))
	if err != nil {
		return nil, err
	}
	from := r.Query("from")
	if from == "" && after.Version > 1 {
		from = strconv.FormatUint(after.Version-1, 10)
	}
	v := compareView{PolicyID: after.PolicyID, After: after, Before: after}
	if from != "" {
		if v.Before, err = readVersion(r, from); err != nil {
			return nil, err
		}
	}
	if v.Names, err = readNames(r); err != nil {
		return nil, err
	}
	r.Title = "Compare versions of " + after.PolicyID
	return v, v.compare()
}

// compare computes the lines in which the versions differ.
func (v *compareView) compare() error {
	before, err := canonicalLines(v.Before.Text)
	if err != nil {
		return err
	}
	after, err := canonicalLines(v.After.Text)
	if err != nil {
		return err
	}
	if v.TooLong = before == nil || after == nil; v.TooLong {
		return nil
	}
	shown := 0
	_, differences, _ := strings.Cut(string(diff.Diff("before", before, "after", after)), "+++ after\n")
	for text := range strings.Lines(differences) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "@") {
			v.Hunks = append(v.Hunks, newHunk(text))
			continue
		}
		one := line{text[:1], text[1:]}
		switch one.Mark {
		case "+":
			v.Added++
		case "-":
			v.Removed++
		}
		if shown++; shown > maxShown {
			v.Left++
			continue
		}
		last := &v.Hunks[len(v.Hunks)-1]
		last.Lines = append(last.Lines, one)
	}
	for len(v.Hunks) > 0 && v.Hunks[len(v.Hunks)-1].Lines == nil {
		v.Hunks = v.Hunks[:len(v.Hunks)-1]
	}
	return nil
}

// newHunk parses the line numbers of a header such as @@ -3,7 +3,8 @@.
func newHunk(header string) (h hunk) {
	number := func(sign string) int {
		_, rest, _ := strings.Cut(header, " "+sign)
		end := strings.IndexAny(rest, ", ")
		n, _ := strconv.Atoi(rest[:max(end, 0)])
		return n
	}
	return hunk{Before: number("-"), After: number("+")}
}

// canonicalLines returns the document of a version as canonical JSON with one member per line, or nil if it has too
// many lines.
func canonicalLines(shown jsontext.Value) ([]byte, error) {
	document, err := canonicalDocument(shown)
	if err != nil {
		return nil, err
	}
	lines := bytes.Count(document, []byte{','}) // an upper bound: commas in texts count too
	for _, bracket := range "{[" {
		lines += 2 * bytes.Count(document, []byte{byte(bracket)})
	}
	if lines > maxCompared {
		return nil, nil
	}
	return []byte(indent(document) + "\n"), nil
}

// canonicalDocument returns the document of a version as the service enforces it, with its tests.
func canonicalDocument(shown jsontext.Value) (jsontext.Value, error) {
	var all members
	if err := decode(shown, &all); err != nil {
		return nil, err
	}
	kept := members{}
	for _, name := range documentMembers() {
		kept[name] = all[name]
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	document := jsontext.Value(text)
	return document, document.Canonicalize()
}
