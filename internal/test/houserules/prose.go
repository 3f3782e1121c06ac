package houserules

import (
	"go/ast"
	"regexp"
	"strings"
)

// Prose counts words and habits of comments. Rates are per 1,000 words.
type Prose struct {
	Words int
	// Nominal counts "what" as a noun: "what is not pinned". Questions, also indirect ones ("says what it is"),
	// do not count.
	Nominal   int
	Partitive int // "of it" and "of them"
	Anonymous int // "whoever", "whatever", "nobody", "somebody", and "who" without a noun before it
	Sentences int
	Long      int // sentences of more than 25 words
	Examples  int // "for example" and "e.g."
}

// Rate returns n per 1,000 words, 0 for no words.
func (p Prose) Rate(n int) float64 {
	if p.Words == 0 {
		return 0
	}
	return 1000 * float64(n) / float64(p.Words)
}

// Plus returns the counts of both.
func (p Prose) Plus(other Prose) Prose {
	p.Words += other.Words
	p.Nominal += other.Nominal
	p.Partitive += other.Partitive
	p.Anonymous += other.Anonymous
	p.Sentences += other.Sentences
	p.Long += other.Long
	p.Examples += other.Examples
	return p
}

// LongSentence is the number of words that a sentence may have.
const LongSentence = 25

var (
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	sentence = regexp.MustCompile(`[.!?:;](?:\s+|$)`)
	nominal  = regexp.MustCompile(`(?i)\bwhat\b`)
	indirect = regexp.MustCompile(`(?i)\b(?:says?|said|knows?|tells?|told|shows?|decides?|sees?` +
		`|asks?|explains?|determines?|learns?) (?:\w+ )?what\b`)
	quoted    = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")
	partitive = regexp.MustCompile(`(?i)\bof (?:it|them)\b`)
	anonymous = regexp.MustCompile(`(?i)\b(?:whoever|whatever|whichever|nobody|somebody|everybody)\b` +
		`|(?:^|[.;:,] +)[Ww]ho\b` +
		`|\b(?:for|to|of|by|with|from|knows|says|tells|and|or) who\b`)
	example = regexp.MustCompile(`(?i)\bfor example\b|\be\.g\.`)
)

// CountProse counts a text. Lines that are indented are code and do not count, and neither
// does text in quotes.
func CountProse(text string) Prose {
	var p Prose
	prose := quoted.ReplaceAllString(withoutCode(text), "")
	p.Words = len(word.FindAllString(prose, -1))
	p.Partitive = len(partitive.FindAllString(prose, -1))
	p.Examples = len(example.FindAllString(prose, -1))
	for at := 0; at < len(prose); {
		end := len(prose)
		question := false
		if m := sentence.FindStringIndex(prose[at:]); m != nil {
			end = at + m[1]
			question = prose[at+m[0]] == '?'
		}
		s := prose[at:end]
		at = end
		p.countSentence(s, question)
	}
	return p
}

func (p *Prose) countSentence(s string, question bool) {
	n := len(word.FindAllString(s, -1))
	if n == 0 {
		return
	}
	p.Sentences++
	if n > LongSentence {
		p.Long++
	}
	if !question {
		p.Nominal += len(nominal.FindAllString(s, -1)) - len(indirect.FindAllString(s, -1))
		p.Anonymous += len(anonymous.FindAllString(s, -1))
	}
}

// withoutCode joins the lines of a comment that are prose. An empty line and the start of
// a list item end a sentence.
func withoutCode(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			b.WriteString(". ")
			continue
		case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "    "):
			continue
		case strings.HasPrefix(trimmed, "- "):
			b.WriteString(". ")
			trimmed = trimmed[2:]
		}
		b.WriteString(trimmed)
		b.WriteByte(' ')
	}
	return b.String()
}

// Comments counts the comments of each folder.
func (t *Tree) Comments() map[string]Prose {
	folders := make(map[string]Prose)
	for _, f := range t.Files {
		p := folders[f.Package()]
		for _, group := range f.Syntax.Comments {
			p = p.Plus(CountProse(commentText(group)))
		}
		folders[f.Package()] = p
	}
	return folders
}

// commentText is the text of a comment without its marks and without directives.
func commentText(group *ast.CommentGroup) string {
	return strings.TrimSuffix(group.Text(), "\n")
}
