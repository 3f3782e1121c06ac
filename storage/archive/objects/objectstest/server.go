package objectstest

import (
	"crypto/md5" // an ETag of S3 is one
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AccessKey is the key that Server expects.
const AccessKey = "AKIDEXAMPLE"

// Server is a small in-memory S3 server for tests. The zero value honors conditional writes. It checks the access key
// of a signature, and the signature itself only if Secret is set.
type Server struct {
	Secret             string // the secret access key of AccessKey
	IgnoresIfNoneMatch bool
	IgnoresIfMatch     bool
	KeepsVersions      bool
	Forgets            bool // acknowledges deletes without carrying them out

	mu     sync.Mutex
	stored map[string][]byte
}

// ServeHTTP handles PUT, GET and DELETE of objects.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+AccessKey+"/") {
		Refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	}
	if s.Secret != "" && !s.isSigned(r) {
		Refuse(w, http.StatusForbidden, "SignatureDoesNotMatch")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		Refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	content, found := s.stored[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		s.putObject(w, r, body, content, found)
	case http.MethodDelete:
		if !s.Forgets {
			delete(s.stored, r.URL.Path)
		}
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		if !found {
			Refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", entityTag(content))
		_, _ = w.Write(content)
	default:
		Refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

var signedHeaders = regexp.MustCompile(`Credential=[^/]*/[0-9]{8}/([^/]*)/s3/aws4_request, SignedHeaders=([^,]*),`)

// isSigned reports whether signing the request again with the secret gives the same signature.
func (s *Server) isSigned(r *http.Request) bool {
	got := r.Header.Get("Authorization")
	scope := signedHeaders.FindStringSubmatch(got)
	date, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if scope == nil || err != nil {
		return false
	}
	again := r.Clone(r.Context())
	again.URL.Host, again.Header = r.Host, http.Header{}
	for name := range strings.SplitSeq(scope[2], ";") {
		if value := r.Header.Get(name); value != "" {
			again.Header.Set(name, value)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err = signer.SignHTTP(r.Context(), aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: s.Secret,
		SessionToken: r.Header.Get("X-Amz-Security-Token")}, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", scope[1], date)
	return err == nil && again.Header.Get("Authorization") == got
}

// putObject writes under the conditions of the request. The caller must hold the lock.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request, body, content []byte, found bool) {
	if r.Header.Get("If-None-Match") == "*" && found && !s.IgnoresIfNoneMatch {
		Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	if want := r.Header.Get("If-Match"); want != "" && !s.IgnoresIfMatch {
		if !found {
			Refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		if want != entityTag(content) {
			Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
	}
	if s.stored == nil {
		s.stored = make(map[string][]byte)
	}
	s.stored[r.URL.Path] = body
	w.Header().Set("ETag", entityTag(body))
	if s.KeepsVersions {
		w.Header().Set("X-Amz-Version-Id", "3HL4kqtJlcpXroDTDmJ")
	}
}

func entityTag(content []byte) string {
	digest := md5.Sum(content)
	return `"` + hex.EncodeToString(digest[:]) + `"`
}

// Refuse responds with an S3 error document.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>m</Message></Error>", code)
}
