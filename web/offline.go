package web

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/web/page"
)

// offline is the page that checks documents as one file, which a reader keeps and opens without a network.
type offline struct {
	body   []byte
	sha256 string // in hex
}

// offlineView is the content of the file: it has its styles and scripts inside.
type offlineView struct {
	Policy   string
	Style    template.CSS
	Modules  template.HTML // the import map
	Start    template.HTML // the script that starts the page
	Verifier string
}

// moduleImport finds the relative imports of the files, which all have one form.
var moduleImport = regexp.MustCompile(`(from |import\()"(\.\.?/[^"]+)"`)

// offlineModules returns an import map with the modules of the check page as data URLs, also with those that it imports
// only when it needs them. A module in a data URL can't
// name another one by a relative path, so each import gets the name that the map has.
func offlineModules(files *page.Assets) (string, error) {
	imports := make(map[string]string)
	names := []string{checkScript}
	for i := 0; i < len(names); i++ {
		name := names[i]
		source := moduleImport.ReplaceAllStringFunc(string(files.Content(name)), func(found string) string {
			parts := moduleImport.FindStringSubmatch(found)
			imported := path.Join(path.Dir(name), parts[2])
			if !slices.Contains(names, imported) {
				names = append(names, imported)
			}
			return parts[1] + `"` + moduleName(imported) + `"`
		})
		imports[moduleName(name)] = "data:text/javascript;base64," + base64.StdEncoding.EncodeToString([]byte(source))
	}
	text, err := json.Marshal(map[string]any{"imports": imports})
	return string(text), err
}

func moduleName(name string) string { return "agentledger/" + name }

// inlineScript returns a script element and the source expression that allows it.
func inlineScript(kind, text string) (template.HTML, string) {
	sum := sha256.Sum256([]byte(text))
	allowed := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return template.HTML(`<script type="` + kind + `">` + text + `</script>`), allowed // texts of the program
}

// renderOffline makes the file. It takes some milliseconds, so a service does it for the first reader who asks.
func renderOffline(shown *page.Views, files *page.Assets) (*offline, error) {
	modules, err := offlineModules(files)
	if err != nil {
		return nil, fmt.Errorf("render offline page: %w", err)
	}
	v := offlineView{Style: template.CSS(files.Content("pages.css")), Verifier: files.Verifier}
	var allowed [2]string
	v.Modules, allowed[0] = inlineScript("importmap", modules)
	v.Start, allowed[1] = inlineScript("module", `import "`+moduleName(checkScript)+`";`)
	v.Policy = "default-src 'none'; script-src data: " + strings.Join(allowed[:], " ") +
		"; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"
	body, err := shown.Execute(offlinePage, "offline", v)
	return &offline{body, page.HexSum(body)}, err
}

// serveOffline serves the file for keeping. It is not shown at its address, where these pages' policy refuses scripts
// inside a page.
func (s *Server) serveOffline(*request) (page.Answer, error) {
	file, err := s.offline()
	if err != nil {
		return page.Answer{}, err
	}
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: file.body,
		File: "agentledger-check.html"}, nil
}

// OfflinePage returns that file as every service of this version serves it, and the list of the verifier's files in the
// form of sha256sum. The page shows the SHA-256 of the list.
func OfflinePage() (body, verifierSums []byte, err error) {
	kit := page.NewKit("https://log.example") // the file names no address
	kept, err := renderOffline(parseViews(kit), kit.Assets)
	if err != nil {
		return nil, nil, err
	}
	return kept.body, kit.Assets.Content(page.VerifierFolder + "SHA256SUMS"), nil
}
