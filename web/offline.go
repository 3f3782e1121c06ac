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

// offline is the check page as a single file, which a reader saves and opens without a network.
type offline struct {
	body   []byte
	sha256 string // in hex
}

// offlineView is the content of the file, with inlined styles and scripts.
type offlineView struct {
	Policy   string
	Style    template.CSS
	Modules  template.HTML // the import map
	Start    template.HTML // the script that starts the page
	Verifier string
}

// moduleImport matches the relative imports of the files, which all have the same form.
var moduleImport = regexp.MustCompile(`(from |import\()"(\.\.?/[^"]+)"`)

// offlineModules returns an import map with the modules of the check page as data URLs, including dynamic imports. A
// module in a data URL cannot import another one by a relative path, so each import is rewritten to its name in the
// map.
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
	return template.HTML(`<script type="` + kind + `">` + text + `</script>`), allowed // the texts are part of the program
}

// renderOffline renders the file. It takes some milliseconds, so a service does it on the first request.
func renderOffline(shown *page.Views, files *page.Assets) (*offline, error) {
	modules, err := offlineModules(files)
	if err != nil {
		return nil, fmt.Errorf("render offline page: %w", err)
	}
	v := offlineView{Style: template.CSS(files.Content("agentledger.css")), Verifier: files.Verifier}
	var allowed [2]string
	v.Modules, allowed[0] = inlineScript("importmap", modules)
	v.Start, allowed[1] = inlineScript("module", `import "`+moduleName(checkScript)+`";`)
	v.Policy = "default-src 'none'; script-src data: " + strings.Join(allowed[:], " ") +
		"; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"
	body, err := shown.Execute(offlinePage, "offline", v)
	return &offline{body, page.HexSum(body)}, err
}

// serveOffline serves the file as a download. It cannot be shown at its address, because the pages' policy forbids
// inline scripts.
func (s *Server) serveOffline(*request) (page.Answer, error) {
	file, err := s.offline()
	if err != nil {
		return page.Answer{}, err
	}
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: file.body,
		File: "agentledger-check.html"}, nil
}

// OfflinePage returns the file as every service of this version serves it, and the list of the verifier's files in the
// format of sha256sum. The page shows the SHA-256 of the list.
func OfflinePage() (body, verifierSums []byte, err error) {
	kit := page.NewKit("https://log.example") // the file contains no address
	kept, err := renderOffline(parseViews(kit), kit.Assets)
	if err != nil {
		return nil, nil, err
	}
	return kept.body, kit.Assets.Content(page.VerifierFolder + "SHA256SUMS"), nil
}
