package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// repositoryURL begins the addresses of files that are not part of the site.
const repositoryURL = "https://github.com/agentledger/agentledger/blob/main/"

//go:embed page.html
var pageSource string

//go:embed style.css
var style []byte

//go:embed search.js
var search []byte

// patterns select the documents of the site, relative to the repository.
var patterns = []string{"*.md", "docs/*.md", "docs/*/*.md", "clients/*/README.md", "client/README.md", "examples/README.md"}

// groups are the parts of the left column, in order, by the beginning of the path. The last match counts.
var groups = []struct{ title, prefix string }{
	{"Start", ""}, {"Start", "docs/"}, {"Quick start", "docs/quickstart/"}, {"Clients", "client"}, {"Guides", "docs/guides/"}, {"Guides", "docs/policies/"},
	{"Audit", "docs/audit/"}, {"Operate", "docs/operate/"}, {"Runbooks", "docs/runbooks/"}, {"Reference", "docs/reference/"}, {"Specifications", "docs/spec/"},
	{"Internals", "docs/internals/"}, {"Examples", "examples/"},
}

// page is a document.
type page struct {
	path     string // of the Markdown file in the repository, with slashes
	source   []byte
	tree     ast.Node
	Title    string
	sections []section
}

// section is a heading with the text below it, for the search.
type section struct {
	Page    string `json:"p"` // title of the page
	Title   string `json:"t"`
	Address string `json:"u"` // relative to the root of the site
	Text    string `json:"x"`
}

// maxIndexed bounds the text of a section in the search index, in bytes.
const maxIndexed = 1500

// address returns the path of a document's page in the site.
func address(file string) string {
	if file == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}

// build writes the site and returns the number of its pages.
func build(root, out string) (int, error) {
	pages, err := readPages(root)
	if err != nil {
		return 0, err
	}
	if err := os.RemoveAll(out); err != nil {
		return 0, err
	}
	markdown := newMarkdown()
	view, err := template.New("page").Parse(pageSource)
	if err != nil {
		return 0, err
	}
	var index []section
	for _, p := range pages {
		p.tree = markdown.Parser().Parse(text.NewReader(p.source), parser.WithContext(parser.NewContext(parser.WithIDs(newSlugs()))))
		p.readSections()
		index = append(index, p.sections...)
	}
	for _, p := range pages {
		if err := writePage(markdown, view, root, out, p, pages); err != nil {
			return 0, fmt.Errorf("%s: %w", p.path, err)
		}
	}
	pictures, err := fs.Glob(os.DirFS(root), "docs/pictures/*")
	if err != nil {
		return 0, err
	}
	for _, name := range pictures { // HTML in documents refers to them too
		if err := copyFile(filepath.Join(root, filepath.FromSlash(name)), filepath.Join(out, filepath.FromSlash(name))); err != nil {
			return 0, err
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return 0, err
	}
	for name, content := range map[string][]byte{"style.css": style, "search.js": search, "search-index.js": slices.Concat([]byte("var searchIndex = "), data, []byte(";\n"))} {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return 0, err
		}
	}
	return len(pages), nil
}

func newMarkdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe())) // documents of the repository have anchors in HTML
}

// readPages returns the documents in the order of their paths.
func readPages(root string) ([]*page, error) {
	var pages []*page
	for _, pattern := range patterns {
		names, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			pages = append(pages, &page{path: name, source: source})
		}
	}
	return pages, nil
}

// readSections sets the title and the sections of a page.
func (p *page) readSections() {
	current := -1
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		if h, ok := n.(*ast.Heading); ok {
			title := plainText(h, p.source)
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			if p.Title == "" {
				p.Title = title
			}
			p.sections = append(p.sections, section{Title: title, Address: address(p.path) + "#" + string(name)})
			current = len(p.sections) - 1
			return ast.WalkSkipChildren, nil
		}
		if n.Type() == ast.TypeBlock && current >= 0 && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeInline {
			s := &p.sections[current]
			if words := plainText(n, p.source); len(s.Text)+len(words) < maxIndexed {
				s.Text += words + " "
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	if p.Title == "" {
		p.Title = p.path
	}
	for i := range p.sections {
		p.sections[i].Page = p.Title
	}
}

// plainText returns the text below a node without markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

type group struct {
	Title string
	Open  bool
	Links []link
}

type link struct {
	Title, Address string
	Current        bool
}

// navigation returns the left column of a page.
func navigation(current *page, pages []*page) []group {
	var titles []string
	byTitle := make(map[string]*group)
	for _, g := range groups {
		if byTitle[g.title] == nil {
			byTitle[g.title] = &group{Title: g.title}
			titles = append(titles, g.title)
		}
	}
	for _, p := range pages {
		title := ""
		for _, g := range groups {
			if strings.HasPrefix(p.path, g.prefix) {
				title = g.title
			}
		}
		g := byTitle[title]
		g.Links = append(g.Links, link{p.Title, relative(current.path, address(p.path)), p == current})
		g.Open = g.Open || p == current || title == "Start"
	}
	var column []group
	for _, title := range titles {
		if len(byTitle[title].Links) > 0 {
			column = append(column, *byTitle[title])
		}
	}
	return column
}

// relative returns the address of a file of the site, as the page of a document links to it.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

func writePage(markdown goldmark.Markdown, view *template.Template, root, out string, p *page, pages []*page) error {
	if err := resolveLinks(root, p, pages); err != nil {
		return err
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.source, p.tree); err != nil {
		return err
	}
	file := filepath.Join(out, filepath.FromSlash(address(p.path)))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return view.Execute(f, map[string]any{"Title": p.Title, "Root": relative(p.path, ""), "Home": relative(p.path, "index.html"),
		"Navigation": navigation(p, pages), "Body": template.HTML(body.String())})
}

// resolveLinks changes links between documents to links between pages, and lets links to other files of the
// repository lead to GitHub.
func resolveLinks(root string, p *page, pages []*page) error {
	resolve := func(target string) (string, error) {
		file, fragment, hasFragment := strings.Cut(target, "#")
		file = strings.TrimPrefix(file, "./")
		if rest, ok := strings.CutPrefix(file, repositoryURL); ok {
			file = strings.Repeat("../", strings.Count(p.path, "/")) + rest
		}
		if file == "" || regexp.MustCompile(`^[a-z]+:`).MatchString(file) {
			return target, nil
		}
		inRepository := path.Join(path.Dir(p.path), file)
		if slices.ContainsFunc(pages, func(other *page) bool { return other.path == inRepository }) {
			to := relative(p.path, address(inRepository))
			if hasFragment {
				to += "#" + fragment
			}
			return to, nil
		}
		if strings.HasPrefix(inRepository, "docs/pictures/") {
			return relative(p.path, inRepository), nil
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(inRepository))); err != nil {
			return "", fmt.Errorf("links to %s, which does not exist", target)
		}
		return repositoryURL + inRepository, nil
	}
	return ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var target *[]byte
		switch n := n.(type) {
		case *ast.Link:
			target = &n.Destination
		case *ast.Image:
			target = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		to, err := resolve(string(*target))
		*target = []byte(to)
		return ast.WalkContinue, err
	})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// slugs generates the fragments of the headings of a document, as GitHub does.
type slugs struct{ used map[string]int }

func newSlugs() *slugs { return &slugs{make(map[string]int)} }

var notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Generate implements parser.IDs.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(string(value), "$1")
	title = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(title, "")
	slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
	n := s.used[slug]
	s.used[slug]++
	if n > 0 {
		slug = fmt.Sprintf("%s-%d", slug, n)
	}
	return []byte(slug)
}

// Put implements parser.IDs.
func (s *slugs) Put(value []byte) { s.used[string(value)]++ }
