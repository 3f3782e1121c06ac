// Package chart packs the Helm chart of deploy/helm into the file of a release.
//
// Invariants:
//   - The bytes depend only on the chart's files, the version and the commit's time.
//   - The version of the release is that of the chart, of the program and of the image.
package chart

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/agentledger/agentledger/tools/release/archive"
)

// Folder is the folder of the chart in a source tree.
const Folder = "deploy/helm/agentledger"

// ignored is the list of files that Helm omits from a package. Only Helm reads it.
const ignored = ".helmignore"

// alerts are the alert rules, of which the chart contains a copy.
const alerts, alertsCopy = "deploy/alerts.yaml", "agentledger/files/alerts.yaml"

// placeholders are the lines of Chart.yaml that get the version.
var placeholders = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^(version: )0\.0\.0()$`), regexp.MustCompile(`(?m)^(appVersion: ")0\.0\.0(")$`),
}

// Name is the name of the packed chart.
func Name(version string) string { return "agentledger-" + version + ".tgz" }

// Write packs the chart of a source tree into the folder dir.
func Write(dir, source, version string, at time.Time) error {
	root := filepath.Join(source, filepath.FromSlash(Folder))
	var files []archive.File
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ignored {
			return err
		}
		inside, err := filepath.Rel(root, path)
		files = append(files, archive.File{Name: "agentledger/" + filepath.ToSlash(inside), Source: path, Mode: 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("list files of chart: %w", err)
	}
	files = append(files, archive.File{Name: alertsCopy, Source: filepath.Join(source, filepath.FromSlash(alerts)), Mode: 0o644})
	for i := range files {
		if files[i].Name == "agentledger/Chart.yaml" {
			if files[i].Content, err = withVersion(files[i].Source, version); err != nil {
				return err
			}
		}
	}
	return archive.WriteTarGz(filepath.Join(dir, Name(version)), files, at)
}

// withVersion returns the content of Chart.yaml with the version instead of the placeholders.
func withVersion(path, version string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	for _, line := range placeholders {
		if len(line.FindAll(content, -1)) != 1 {
			return nil, fmt.Errorf("%s: %s must match exactly one line", path, line)
		}
		content = line.ReplaceAll(content, []byte("${1}"+version+"${2}"))
	}
	return content, nil
}
