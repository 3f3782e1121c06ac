package help

import (
	"html/template"
	"regexp"
	"strings"
)

// section is a heading of a document and the text below it, up to the next heading.
type section struct {
	ID    string // the fragment that leads to it
	Level int    // 1 for the title of the document
	Title string // Markdown
	text  string // Markdown
}

var heading = regexp.MustCompile(`^(#{1,6}) (.+)$`)

// splitSections returns the sections of a document in Markdown. Lines in fenced code are no headings.
func splitSections(document string) []section {
	var sections []section
	fenced := false
	for line := range strings.Lines(document) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if found := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil && !fenced {
			sections = append(sections, section{ID: headingID(found[2]), Level: len(found[1]), Title: found[2]})
		} else if len(sections) > 0 {
			sections[len(sections)-1].text += line
		}
	}
	return sections
}

var (
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// headingID returns the fragment by which GitHub links to a heading.
func headingID(title string) string {
	title = strings.ToLower(linkText.ReplaceAllString(title, "$1"))
	return strings.ReplaceAll(notInSlug.ReplaceAllString(title, ""), " ", "-")
}

// markdown renders the part of Markdown that the documents use: paragraphs, lists, tables, fenced code, and in texts links,
// code and bold. Everything else is shown as it is. It writes no markup of the document itself.
type markdown struct {
	link func(target string) string // the address of a link
	out  strings.Builder
}

// renderMarkdown renders a text without headings.
func renderMarkdown(text string, link func(target string) string) template.HTML {
	m := &markdown{link: link}
	m.blocks(strings.Split(text, "\n"))
	return template.HTML(m.out.String()) // every text was escaped
}

// renderInline renders the text of one line.
func renderInline(text string, link func(target string) string) template.HTML {
	m := &markdown{link: link}
	m.inline(text)
	return template.HTML(m.out.String()) // every text was escaped
}

var listItem = regexp.MustCompile(`^(?:[-*]|(\d+)\.) +`)

func (m *markdown) blocks(lines []string) {
	for i := 0; i < len(lines); {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			i++
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
				end++
			}
			m.code(lines[i+1 : end])
			i = end + 1
		case strings.HasPrefix(line, "|"):
			end := i
			for end < len(lines) && strings.HasPrefix(lines[end], "|") {
				end++
			}
			m.table(lines[i:end])
			i = end
		case listItem.MatchString(line):
			i += m.list(lines[i:])
		default:
			end := i
			for end < len(lines) && m.continues(lines[end], end == i) {
				end++
			}
			m.out.WriteString("<p>")
			m.inline(strings.Join(lines[i:end], "\n"))
			m.out.WriteString("</p>\n")
			i = end
		}
	}
}

// continues reports whether a line belongs to a paragraph.
func (m *markdown) continues(line string, first bool) bool {
	return first || strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "|") && !listItem.MatchString(line)
}

// list writes the list at the start of lines and returns how many lines it has. Lines of an item after the first one are
// indented.
func (m *markdown) list(lines []string) int {
	marker := listItem.FindStringSubmatch(lines[0])
	open, end := "<ul class=\"list\">", "</ul>\n"
	if marker[1] != "" {
		open, end = "<ol class=\"list\">", "</ol>\n"
	}
	m.out.WriteString(open)
	i := 0
	for i < len(lines) {
		found := listItem.FindStringSubmatch(lines[i])
		if found == nil || (found[1] != "") != (marker[1] != "") {
			break
		}
		item := []string{strings.TrimPrefix(lines[i], found[0])}
		for i++; i < len(lines); i++ {
			indented := strings.HasPrefix(lines[i], "  ")
			if !indented && (strings.TrimSpace(lines[i]) != "" || i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "  ")) {
				break
			}
			item = append(item, strings.TrimPrefix(strings.TrimPrefix(lines[i], "  "), " "))
		}
		m.out.WriteString("<li class=\"tight\">")
		if found[1] != "" {
			m.out.WriteString("<b>" + found[1] + ".</b> ")
		}
		m.item(item)
		m.out.WriteString("</li>\n")
	}
	m.out.WriteString(end)
	return i
}

// item writes the content of an item. A single paragraph has no element of its own.
func (m *markdown) item(lines []string) {
	end := 0
	for end < len(lines) && m.continues(lines[end], end == 0) {
		end++
	}
	m.inline(strings.Join(lines[:end], "\n"))
	m.blocks(lines[end:])
}

func (m *markdown) code(lines []string) {
	m.out.WriteString(`<figure class="code"><pre tabindex="0" role="group" aria-label="Code">`)
	m.out.WriteString(template.HTMLEscapeString(strings.Join(lines, "\n")))
	m.out.WriteString("</pre></figure>\n")
}

// table writes a table, whose second line separates the head.
func (m *markdown) table(lines []string) {
	m.out.WriteString("<table class=\"rows keep\">\n<thead><tr>")
	for _, cell := range cells(lines[0]) {
		if cell == "" {
			m.out.WriteString("<td></td>")
			continue
		}
		m.out.WriteString(`<th scope="col" class="wrap">`)
		m.inline(cell)
		m.out.WriteString("</th>")
	}
	m.out.WriteString("</tr></thead>\n<tbody>\n")
	for _, line := range lines[min(2, len(lines)):] {
		m.out.WriteString("<tr>")
		for i, cell := range cells(line) {
			if i == 0 && !strings.Contains(cell, "](") { // the link of a key covers its row
				m.out.WriteString(`<td class="k wrap">`)
			} else {
				m.out.WriteString(`<td class="wrap">`)
			}
			m.inline(cell)
			m.out.WriteString("</td>")
		}
		m.out.WriteString("</tr>\n")
	}
	m.out.WriteString("</tbody>\n</table>\n")
}

// cells returns the cells of a line of a table. A vertical bar in a cell is written as \|.
func cells(line string) []string {
	line = strings.ReplaceAll(line, `\|`, "\x00")
	found := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i, cell := range found {
		found[i] = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
	}
	return found
}

// span matches code, bold and links.
var span = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+(?:\\*[^*]+)*)\\*\\*|\\[((?:[^\\]`]|`[^`]*`)+)\\]\\(([^)\\s]+)\\)")

func (m *markdown) inline(text string) {
	for text != "" {
		at := span.FindStringSubmatchIndex(text)
		if at == nil {
			m.out.WriteString(template.HTMLEscapeString(text))
			return
		}
		m.out.WriteString(template.HTMLEscapeString(text[:at[0]]))
		switch {
		case at[2] >= 0:
			m.out.WriteString("<code>" + template.HTMLEscapeString(text[at[2]:at[3]]) + "</code>")
		case at[4] >= 0:
			m.out.WriteString("<b>")
			m.inline(text[at[4]:at[5]])
			m.out.WriteString("</b>")
		default:
			m.out.WriteString(`<a href="` + template.HTMLEscapeString(m.link(text[at[8]:at[9]])) + `">`)
			m.inline(text[at[6]:at[7]])
			m.out.WriteString("</a>")
		}
		text = text[at[1]:]
	}
}
