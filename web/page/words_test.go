package page

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "write web/words.txt anew")

// catalogue is the file with all texts that people read. It is made from the sources, so that it can be read as a whole: a
// template that has its own sentences reads better than one with keys, and no text is written twice.
const catalogue = "../words.txt"

// readerSources are the folders and files with texts of pages, mails and Slack messages.
var readerSources = []string{"web", "internal/deliver/notify", "internal/deliver/mail", "internal/deliver/webhook/slack.go", "console/slack.go",
	"internal/deliver/webhook/notice.go", "internal/flow/approval/notice.go", "internal/flow/approval/voteobstacle.go",
	"internal/flow/approval/remind.go", "internal/read/auditlist/sentences.go", "internal/operate/status/findings.go", "internal/read/evidence/report.go", "internal/read/evidence/report.html"}

// texts returns the texts of each source, in order and without duplicates, by the path of the source in the repository.
func texts(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, from := range readerSources {
		err := filepath.WalkDir(filepath.Join("../..", from), func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				if err == nil && (entry.Name() == "node_modules" || entry.Name() == "starts") {
					return filepath.SkipDir
				}
				return err
			}
			var read func(source []byte) ([]string, error)
			switch {
			case strings.HasSuffix(name, "_test.go"):
				return nil
			case filepath.Ext(name) == ".html":
				read = textsOfTemplate
			case filepath.Ext(name) == ".go":
				read = textsOfGo
			case filepath.Ext(name) == ".js":
				read = textsOfScript
			default:
				return nil
			}
			source, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			found, err := read(source)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			slices.Sort(found)
			if strings.Contains(name, "auditlist") { // by kind and transition
				found = slices.DeleteFunc(found, keyOfSentence.MatchString)
			}
			if found = slices.Compact(found); len(found) > 0 {
				all[strings.TrimPrefix(filepath.ToSlash(name), "../../")] = found
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// readCatalogue returns the texts of the file as it is in the repository.
func readCatalogue(t *testing.T) (text string, entries map[string][]string) {
	t.Helper()
	file, err := os.ReadFile(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	entries, source := make(map[string][]string), ""
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			source = name
		} else if line != "" && source != "" {
			entries[source] = append(entries[source], line)
		}
	}
	return string(file), entries
}

// The catalogue has all texts of the sources, as they are.
func TestCatalogueIsCurrent(t *testing.T) {
	all := texts(t)
	var b strings.Builder
	b.WriteString("Every text that people read on pages, in mails and in Slack messages, by its source. Generated: `go test ./web/page -run Catalogue -update`.\n" +
		"`x` is code, {…} a value, [a|b] one of several texts or none.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString("\n== " + name + "\n" + strings.Join(all[name], "\n") + "\n")
	}
	if *update {
		if err := os.WriteFile(catalogue, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := readCatalogue(t); text != b.String() {
		t.Error("web/words.txt is not current: go test ./web/page -run Catalogue -update")
	}
}

// value represents what a template or a script inserts.
const value = "{…}"

var (
	action   = regexp.MustCompile(`\{\{-?\s*(?s:(.*?))\s*-?\}\}`)
	literal  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	noscript = regexp.MustCompile(`</?noscript>`) // its content would be one text
	comment  = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}|<!--.*?-->`)
)

// textsOfTemplate returns the texts of a template: text, the attributes that people read, and literals of its actions.
func textsOfTemplate(source []byte) (found []string, err error) {
	source = noscript.ReplaceAll(comment.ReplaceAll(source, nil), []byte("<hr>"))
	add := func(text string) {
		if text = tidy(text); hasWord(text) && !strings.Contains(text, "=\"{…}") {
			found = append(found, text)
		}
	}
	plain := action.ReplaceAllStringFunc(string(source), func(a string) string {
		inside := action.FindStringSubmatch(a)[1]
		word, _, _ := strings.Cut(inside, " ")
		for _, l := range literal.FindAllStringSubmatch(inside, -1) {
			text, err := strconv.Unquote(`"` + l[1] + `"`)
			if name, after, ok := strings.Cut(text, "="); ok && !strings.Contains(name, " ") {
				text = after
			}
			if err == nil && isSentence(text) && !strings.HasPrefix(word, "eq") {
				add(text)
			}
		}
		switch word {
		case "if", "with", "range":
			return "["
		case "else":
			return "|"
		case "end":
			return "]"
		case "define", "block":
			return "[\x00"
		case "template":
			if strings.HasPrefix(inside, `template "text"`) || strings.HasPrefix(inside, `template "time"`) || strings.HasPrefix(inside, `template "value"`) {
				return value
			}
			return "\x00"
		}
		if strings.HasPrefix(word, "$") && strings.Contains(inside, "=") {
			return ""
		}
		return value
	})
	inline := []string{"a", "b", "i", "em", "strong", "code", "kbd", "span", "bdi", "time", "br", "abbr", "small"}
	z := html.NewTokenizer(bytes.NewReader([]byte(strings.ReplaceAll(plain, "\x00", "<hr>"))))
	text, skipped := "", 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			add(text)
			return found, nil
		}
		tag := z.Token()
		switch kind {
		case html.TextToken:
			if skipped == 0 {
				text += tag.Data
			}
			continue
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
		default:
			continue
		}
		for _, a := range tag.Attr {
			if slices.Contains([]string{"title", "aria-label", "placeholder", "alt"}, a.Key) {
				add(a.Val)
			}
		}
		switch {
		case tag.Data == "pre" || tag.Data == "script" || tag.Data == "style" || tag.Data == "svg":
			if kind == html.StartTagToken {
				skipped++
			} else if kind == html.EndTagToken {
				skipped--
			}
		case tag.Data == "code" && skipped == 0:
			text += "`"
		case slices.Contains(inline, tag.Data):
			continue
		}
		if !slices.Contains(inline, tag.Data) {
			add(text)
			text = ""
		}
	}
}

var (
	tagEnd   = regexp.MustCompile(`[a-z-]+">`) // of a tag that an action ends in two ways
	spaces   = regexp.MustCompile(`\s+`)
	emptied  = regexp.MustCompile(`\[[|\s]*\]`)
	onlyIn   = regexp.MustCompile(`^\[([^\[\]|]*)\]$`)
	wordLike = regexp.MustCompile(`\p{L}{2}`)
)

// tidy returns a text in one line, without the brackets of actions that begin or end elsewhere.
func tidy(text string) string {
	text = spaces.ReplaceAllString(tagEnd.ReplaceAllString(text, ""), " ")
	var open []int
	drop := make(map[int]bool)
	for i, c := range text {
		switch c {
		case '[':
			open = append(open, i)
		case ']':
			if len(open) == 0 {
				drop[i] = true
			} else {
				open = open[:len(open)-1]
			}
		case '|':
			drop[i] = len(open) == 0
		}
	}
	for _, i := range open {
		drop[i] = true
	}
	var b strings.Builder
	for i, c := range text {
		if !drop[i] {
			b.WriteRune(c)
		}
	}
	for text = b.String(); emptied.MatchString(text); {
		text = emptied.ReplaceAllString(text, "")
	}
	text = strings.TrimSpace(spaces.ReplaceAllString(text, " "))
	for onlyIn.MatchString(text) {
		text = strings.TrimSpace(onlyIn.ReplaceAllString(text, "$1"))
	}
	return text
}

// hasWord reports whether a text has words besides values and code.
func hasWord(text string) bool {
	return wordLike.MatchString(inCode.ReplaceAllString(text, ""))
}

var (
	inCode      = regexp.MustCompile("`[^`]*`")
	notSentence = regexp.MustCompile(`^[/#.<&?$%]|https?://|^[a-z][\w-]*$|^[\w.]+\(|[<>]{1}\w|\\|^\s*[a-z_-]+:\s|^[\w-]+/[\w.+-]+|=\{|["=]\w+|^[A-Z0-9_-]+$|^(GET|POST|PUT|HEAD|PATCH|DELETE) |2006|^Mon, |^(btn|step|num|peek|username) |^export |-src |input, `)
	wordPair    = regexp.MustCompile(`\p{L}[\p{L}’'-]*[,:]? (?:\p{L}|\{…\})|\{…\}[,:]? \p{L}{2}`)
	oneWord     = regexp.MustCompile(`^[A-Z][a-z]+(?:-[a-z]+)?$`)
)

// isSentence reports whether a literal of a program is a text for people: words, or one word with a capital letter.
func isSentence(text string) bool {
	return !notSentence.MatchString(text) && (wordPair.MatchString(text) || oneWord.MatchString(text))
}

var verb = regexp.MustCompile(`%[-+#0]*\d*(?:\.\d+)?[a-zA-Z]`)

// textsOfGo returns the literals of a file that are texts for people. Errors for the log are not.
func textsOfGo(source []byte) (found []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	seen := make(map[ast.Node]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || seen[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				seen[n.Tag] = true
			}
		case *ast.CallExpr:
			name := calledName(n)
			if strings.HasSuffix(strings.ToLower(name), "unreadable") {
				for _, step := range n.Args { // the message is for people, the step for the log
					if l, ok := step.(*ast.BasicLit); ok && strings.ToLower(l.Value) == l.Value {
						seen[l] = true
					}
				}
			}
			if name == "fmt.Errorf" || name == "errors.New" || name == "panic" || strings.HasPrefix(name, "regexp.") ||
				strings.HasPrefix(name, "slog.") || strings.Contains(name, "ogger.") || strings.HasSuffix(name, "Header.Set") || name == "h.Set" {
				return false
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			text, ok := joined(n.(ast.Expr), seen)
			if !ok {
				return true
			}
			text = strings.ReplaceAll(verb.ReplaceAllString(text, value), "%%", "%")
			for line := range strings.Lines(text) {
				if line = strings.Trim(line, "\n"); isSentence(strings.TrimSpace(line)) {
					found = append(found, strings.TrimSpace(line))
				}
			}
		}
		return true
	})
	return found, nil
}

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return "." + f.Sel.Name
	}
	return ""
}

// joined returns a text that is made of literals and values with plus signs.
func joined(e ast.Expr, seen map[ast.Node]bool) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING || seen[e] {
			return "", false
		}
		seen[e] = true
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, leftOK := joined(e.X, seen)
		right, rightOK := joined(e.Y, seen)
		if !leftOK && !rightOK {
			return "", false
		}
		if !leftOK {
			left = value
		}
		if !rightOK {
			right = value
		}
		return left + right, true
	}
	return "", false
}

var (
	scriptComment = regexp.MustCompile(`(?m)^\s*//.*$|\s//\s.*$|(?s:/\*.*?\*/)`)
	scriptLiteral = regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.)*)\"|`((?:[^`\\\\]|\\\\.)*)`")
	inserted      = regexp.MustCompile(`\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}`)
)

// textsOfScript returns the literals of a script that are texts for people.
func textsOfScript(source []byte) (found []string, err error) {
	for _, l := range scriptLiteral.FindAllStringSubmatch(scriptComment.ReplaceAllString(string(source), ""), -1) {
		text := strings.TrimSpace(inserted.ReplaceAllString(l[1]+l[2], value))
		if isSentence(text) && text != value {
			found = append(found, text)
		}
	}
	return found, nil
}

// avoided are words that pages no longer use, with the words in their place: one term for one thing.
var avoided = map[string]string{
	`They wait for you|All others`:                   "For you, Everyone's",
	`[Aa]llow with obligation|allow_with_obligation`: "needs approval",
	`Decision in force|Declared decision`:            "Decision, Agent said",
	`[Uu]p to, not with`:                             "Until (before)",
	`Acting for`:                                     "Principal, the name that the agent chose",
	`[Ii]n the name of (?:one|a) user|^In the name`:  "On behalf of, the subject that the agent signed",
	`Name in addresses`:                              "Short name (in links)",
	`Share of the largest`:                           "the bar is enough",
	`Shows of each event|Strangers see`:              "Public detail",
	`Revoke it\b|Take the question away`:             "Withdraw the request",
	`[Dd]ead letters?`:                               "Undelivered",
	`nothing \(null\)`:                               "–",
	`The service answers`:                            "who may do it, and whom to ask",
	`is founded`:                                     "is ready",
	`from the next event on\.`:                       "It takes effect with the next event.",
	`Code for programs`:                              "Reason code (for the agent)",
	`as far as the marks`:                            "what was checked",
	`[Gg]ood until`:                                  "Valid until",
	`[Ll]og(?:ged)? in\b|[Ll]ogin`:                   "sign in",
	`^Email| [Ee]mail`:                               "e-mail",
	`[Mm]eanwhile|any more\b|for ever\b|for good\b`:  "in the meantime, no longer, permanently",
	`[Uu]nder way|goes on\b|anew\b`:                  "in progress, continues, again",
	`[Oo]ne a line`:                                  "one per line",
	`(?:^|[ (])[Ii]ds?\b`:                            "ID",
	`^Made(?: by)?$|\b[Mm]ake(?:s)? (?:the|a) (?:new )?(?:key|token|policy|receiver|organization|passkey|agent|log key)\b`: "create, or generate a key",
	`[Nn]ewest (?:events?|tree|version|cosign|deliver)`:                                                                    "latest",
	`[Ww]ebhook endpoint`: "receiver",
	`looked at fits`:      "no match so far",
}

var (
	// keyOfSentence matches the key of a sentence of the audit list, and placeholder a member that such a sentence shows.
	keyOfSentence = regexp.MustCompile(`^\{…\} \w+$`)
	placeholder   = regexp.MustCompile(`\{[\w|]+\}`)

	identifier   = regexp.MustCompile(`[a-z]+_[a-z]\w*`)
	ended        = regexp.MustCompile(`[.?!:…)\]}>*”]$`)
	endsWithLink = regexp.MustCompile(`(Your passkeys|First steps|Fewer mails|over https,)$`)
	twoInARow    = regexp.MustCompile(`\p{L}\. (?:\p{Lu}\p{Ll}*\b|\{…\})`)
)

// namesOfMembers are texts about members of the interface, which have no other names, and forms of texts.
var namesOfMembers = []string{"amount_usd", "call_id, event_id", "over_budget", "ledger_policy_activated", "policy_digest", "retention_days must", "read_only, held", "vote_hold_hours must", "short_pretty"}

// The texts use one term for one thing, plain words, and the same punctuation.
func TestWords(t *testing.T) {
	_, entries := readCatalogue(t)
	for source, all := range entries {
		for _, text := range all {
			plain := inCode.ReplaceAllString(text, "x")
			for words, instead := range avoided {
				if found := regexp.MustCompile(words).FindString(plain); found != "" {
					t.Errorf("%s: %q has %q: use %s", source, text, found, instead)
				}
			}
			if found := identifier.FindString(placeholder.ReplaceAllString(plain, value)); found != "" && !slices.ContainsFunc(namesOfMembers, func(known string) bool { return strings.Contains(text, known) }) {
				t.Errorf("%s: %q has the identifier %s", source, text, found)
			}
			if strings.Contains(text, "  ") {
				t.Errorf("%s: %q has two spaces in a row", source, text)
			}
			if strings.ContainsAny(plain, "’‘") || strings.Contains(plain, `"`) || strings.Contains(plain, " ...") {
				t.Errorf("%s: %q: apostrophes are straight, quotation marks are “”, and an ellipsis is …", source, text)
			}
			if twoInARow.MatchString(plain) && !ended.MatchString(plain) && !endsWithLink.MatchString(plain) {
				t.Errorf("%s: %q has sentences, and the last one does not end", source, text)
			}
		}
	}
}
