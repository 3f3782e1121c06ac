package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// describeInventory returns the list of a program's modules as a CycloneDX document, for the given name and version of
// the program. The modules, versions and checksums are those that the linker recorded in the program. The document
// contains no time and no random number, so it is reproducible.
func describeInventory(file, name, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("describe modules: %w", err)
	}
	components := []cyclonedx.Component{{BOMRef: "std", Type: cyclonedx.ComponentTypeLibrary, Name: "std",
		Version: info.GoVersion, PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary,
			Name: m.Path, Version: m.Version, PackageURL: url,
			Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}})
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{BOMRef: name, Name: name,
		Type: cyclonedx.ComponentTypeApplication, Version: version,
		PackageURL: "pkg:golang/" + info.Path + "@v" + version}}
	bom.Components = &components
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return nil, fmt.Errorf("describe modules: %w", err)
	}
	return out.Bytes(), nil
}
