package publicapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/header"
)

// documentForm is the subject of a document.
type documentForm uint8

const (
	newestKey documentForm = iota // the did:key of an agent's newest active key
	allKeys                       // the did:web of an agent
	oneKey                        // the did:key of a public key
)

// documentName names the bytes of a document. A change of an agent's keys raises the
// config version of its organization, so the bytes of one name never change.
type documentName struct {
	form     documentForm
	agent    id.Agent // "" with oneKey
	version  uint64   // of the agent's organization; 0 with oneKey
	public   [32]byte // only with oneKey
	resolved bool     // inside a did.Resolution
}

// documentBody is a rendered document with its tag and length, for any media type.
type documentBody response

// documentBytes is about the memory of a document beside its body, in bytes.
const documentBytes = 512

// newDocuments returns a cache of so many bytes. Names of older config versions are never
// asked for again, and go when there is no room.
func newDocuments(room int64) *cache.Loading[documentName, documentBody] {
	return cache.NewLoading(cache.LoadingOptions[documentName, documentBody]{
		MaxAge: cache.Forever, Limit: room,
		Weight: func(_ documentName, b documentBody) int64 { return int64(len(b.body)) + documentBytes },
	})
}

// cachedDocument returns the document of a name in the form that Accept names. It is made by
// find, once for concurrent requests.
func (s *Server) cachedDocument(r *request, name documentName,
	find func(context.Context) (did.Document, error)) (response, error) {
	media := header.PreferredMedia(r.Header["Accept"], did.MediaJSON, did.MediaDID, did.MediaDIDJSON,
		did.MediaDIDLDJSON, did.MediaResolution)
	name.resolved = media == did.MediaResolution
	name.agent = id.Agent(strings.Clone(string(name.agent))) // maybe a part of a whole request
	body, err := s.documents.Get(r.Context(), name, func(ctx context.Context) (documentBody, error) {
		d, err := find(ctx)
		if fault.Is(err, fault.NotFound) {
			return documentBody{}, nil // which is remembered too
		}
		if err != nil {
			return documentBody{}, err
		}
		return renderDocument(d, name.resolved)
	})
	if err == nil && body.body == nil {
		err = errNotFound()
	}
	p := response(body)
	p.media = media
	return p, err
}

func renderDocument(d did.Document, resolved bool) (documentBody, error) {
	var content any = d
	if resolved {
		content = did.Resolved(d)
	}
	body, err := json.Marshal(content)
	p := response{cache: revalidate, vary: "Accept", body: body, length: strconv.Itoa(len(body))}
	p.tag = p.entityTag()
	return documentBody(p), err
}
