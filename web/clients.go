package web

import (
	"encoding/json"

	"github.com/agentledger/agentledger/clients"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/web/page"
)

// clientsPath is the path of the clients' packages.
const clientsPath = "/clients"

// listedPackages is the list of the clients' packages, for programs and for the page.
type listedPackages struct {
	Packages  []listedPackage `json:"packages"`
	Sums      string          `json:"sums_url"`
	Signature string          `json:"signature_url,omitempty"` // "" for a program that is not a signed release
}

// listedPackage is a package of a client.
type listedPackage struct {
	Kind      clients.Kind `json:"kind"`
	Name      string       `json:"name"`
	Version   string       `json:"version"`
	File      string       `json:"file"`
	URL       string       `json:"url"`
	Size      int          `json:"size"`
	SHA256    string       `json:"sha256"`
	Integrity string       `json:"integrity"`
	Install   string       `json:"install"` // command
	Readme    string       `json:"readme_url"`
}

// readmeFile returns the file name of the README of a package.
func readmeFile(k clients.Kind) string {
	if k == clients.NPM {
		return "README-typescript.md"
	}
	return "README-python.md"
}

func (s *Server) describePackages() listedPackages {
	set, folder := s.options.Clients(), s.kit.Public+clientsPath+"/"
	list := listedPackages{Sums: folder + releasefiles.ListName}
	if set.Note != nil {
		list.Signature = folder + releasefiles.NoteName
	}
	for _, p := range set.Packages {
		address, command := folder+p.File, "pip install "
		if p.Kind == clients.NPM {
			command = "npm install "
		}
		list.Packages = append(list.Packages, listedPackage{Kind: p.Kind, Name: p.Name, Version: p.Version,
			File: p.File, URL: address, Size: len(p.Content), SHA256: p.SHA256, Integrity: p.Integrity,
			Install: command + address, Readme: folder + readmeFile(p.Kind)})
	}
	return list
}

// showClients serves the page of the clients' packages.
func (s *Server) showClients(*request) (page.Answer, error) {
	body, err := s.render(clientsPage, "Clients", "", s.describePackages())
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

// listClients serves the list of the clients' packages.
func (s *Server) listClients(*request) (page.Answer, error) {
	body, err := json.Marshal(s.describePackages())
	return page.Answer{Media: edge.MediaJSON, Cache: page.Revalidate, Body: body}, err
}

// serveClient serves a package, its README, the list of hashes or its signed note. The release key has signed the
// content of each package under its file name, so packages of a signed release never change. Other programs may have
// other packages of the same version.
func (s *Server) serveClient(r *request) (page.Answer, error) {
	set, name := s.options.Clients(), r.pathParameter("file")
	a := page.Answer{Media: "text/plain; charset=utf-8", Cache: page.Revalidate}
	switch {
	case name == releasefiles.ListName:
		a.Body = []byte(set.Sums)
		return a, nil
	case name == releasefiles.NoteName && set.Note != nil:
		a.Body = set.Note
		return a, nil
	}
	for _, p := range set.Packages {
		switch name {
		case readmeFile(p.Kind):
			a.Body = p.Readme
			return a, nil
		case p.File:
			a.Media, a.Body, a.Tag = p.Media, p.Content, `"`+p.SHA256[:32]+`"`
			if set.Note != nil {
				a.Cache = page.Immutable
			}
			return a, nil
		}
	}
	return page.Answer{}, errNotFound()
}
