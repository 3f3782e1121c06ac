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

// documentName is the cache key of a document. A change of an agent's keys increments the
// config version of its organization, so the document with a name never changes.
type documentName struct {
	form     documentForm
	agent    id.Agent // "" for oneKey
	version  uint64   // config version of the agent's organization; 0 for oneKey
	public   [32]byte // only for oneKey
	resolved bool     // inside a did.Resolution
}

// documentBody is a rendered document with its ETag and length, for any media type.
type documentBody response

// documentBytes is the approximate memory of a cached document in addition to its body, in bytes.
const documentBytes = 512

// newDocuments returns a cache of at most limit bytes. Documents of earlier config versions are never
// requested again and are evicted when the cache is full.
func newDocuments(limit int64) *cache.Loading[documentName, documentBody] {
	return cache.NewLoading(cache.LoadingOptions[documentName, documentBody]{
		MaxAge: cache.Forever, Limit: limit,
		Weight: func(_ documentName, b documentBody) int64 { return int64(len(b.body)) + documentBytes },
	})
}

// cachedDocument returns the document with a name in the media type that Accept prefers. Concurrent requests share one
// call of find.
func (s *Server) cachedDocument(r *request, name documentName,
	find func(context.Context) (did.Document, error)) (response, error) {
	media := header.PreferredMedia(r.Header["Accept"], did.MediaJSON, did.MediaDID, did.MediaDIDJSON,
		did.MediaDIDLDJSON, did.MediaResolution)
	name.resolved = media == did.MediaResolution
	name.agent = id.Agent(strings.Clone(string(name.agent))) // it may share memory with the request
	body, err := s.documents.Get(r.Context(), name, func(ctx context.Context) (documentBody, error) {
		d, err := find(ctx)
		if fault.Is(err, fault.NotFound) {
			return documentBody{}, nil // cached too
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
