package web

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
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
	Integrity string       `json:"integrity"` // Subresource Integrity, as in package-lock.json
	Install   string       `json:"install"`   // command
}

func (s *Server) describePackages() listedPackages {
	set, folder := s.options.Clients(), s.kit.Public+clientsPath+"/"
	list := listedPackages{Sums: folder + releasefiles.ListName}
	if set.Note != nil {
		list.Signature = folder + releasefiles.NoteName
	}
	for _, p := range set.Packages {
		short, long := sha256.Sum256(p.Content), sha512.Sum512(p.Content)
		l := listedPackage{Kind: p.Kind, Name: p.Name, Version: p.Version, File: p.File, URL: folder + p.File,
			Size: len(p.Content), SHA256: hex.EncodeToString(short[:]),
			Integrity: "sha512-" + base64.StdEncoding.EncodeToString(long[:])}
		l.Install = "pip install " + l.URL
		if p.Kind == clients.NPM {
			l.Install = "npm install " + l.URL
		}
		list.Packages = append(list.Packages, l)
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

// serveClient serves a package, the list of hashes or its signed note. The release key has signed the content of each
// file name, so files of a signed release never change. Other programs may have other packages of the same version.
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
		if p.File == name {
			a.Media, a.Body = p.Media, p.Content
			if set.Note != nil {
				a.Cache = page.Immutable
			}
			return a, nil
		}
	}
	return page.Answer{}, errNotFound()
}
