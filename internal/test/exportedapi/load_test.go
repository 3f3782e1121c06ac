// Package exportedapi reads the exported API of the module's public packages from the compiler's export data. Its tests
// check the rules of that API.
//
// Invariants:
//
//   - Public is the only list of the public packages.
//   - The same declarations give the same text: sorted, one line per name.
package exportedapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Module is the path of the module, followed by a slash.
const Module = "github.com/agentledger/agentledger/"

// Public returns the packages that programs outside of the module may import, as paths below Module.
func Public() []string {
	return []string{
		"client", "client/guard", "client/runs", "decimal", "did", "edkey", "event", "fault", "grant", "grant/granthttp", "id",
		"monitor", "policy", "tlog", "trust", "verify", "verify/pack", "verify/signedvote",
	}
}

// Load returns the types of packages of the module and of all their dependencies, by path below Module.
func Load(names []string) (map[string]*types.Package, error) {
	files, err := exportFiles(names)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	open := func(path string) (io.ReadCloser, error) {
		file, ok := files[path]
		if !ok {
			return nil, errors.New("no export data")
		}
		return os.Open(file)
	}
	reader := importer.ForCompiler(token.NewFileSet(), "gc", open)
	packages := make(map[string]*types.Package, len(names))
	for _, name := range names {
		if packages[name], err = reader.Import(Module + name); err != nil {
			return nil, fmt.Errorf("import %s: %w", name, err)
		}
	}
	return packages, nil
}

// exportFiles returns the files with export data by import path.
func exportFiles(names []string) (map[string]string, error) {
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, name := range names {
		arguments = append(arguments, Module+name)
	}
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
	}
	return files, nil
}

// isExternal reports whether a package is outside of the module.
func isExternal(p *types.Package) bool {
	return p == nil || !strings.HasPrefix(p.Path()+"/", Module)
}
