package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Bounds of a response, in bytes.
const (
	maxHeader   = 32 << 10
	maxDocument = 16 << 10 // of an error response
)

// firstPause is the pause before the second attempt. It doubles with each attempt.
const firstPause = 100 * time.Millisecond

// sender signs and sends requests. It retries temporary failures. It is not a library for S3, because minio-go reads any
// 404 without an error document as a missing object, and the client of the AWS SDK adds 5.9 MB to the program and reads
// error documents without a bound (docs/internals/libraries.md).
type sender struct {
	base        *url.URL
	region      string
	credentials credentialSource
	client      *http.Client
	tries       int
	now         func() time.Time
	versioned   *atomic.Bool // a response named a version, so the bucket keeps replaced ones
}

func newSender(a address, o Options) (sender, error) {
	credentials, err := newCredentialSource(a.credentials, o.Getenv)
	if err != nil {
		return sender{}, err
	}
	s := sender{
		base: a.base, region: a.region, credentials: credentials, client: newHTTPClient(o),
		tries: o.Tries, now: o.Now, versioned: new(atomic.Bool),
	}
	if s.tries == 0 {
		s.tries = 4
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// newHTTPClient returns a client that follows no redirects and ignores proxy settings in the environment.
func newHTTPClient(o Options) *http.Client {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: min(o.Timeout, 10*time.Second)}).DialContext,
		TLSClientConfig:        tlsConfig(o.Roots),
		TLSHandshakeTimeout:    min(o.Timeout, 10*time.Second),
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // a compressed response has another ETag
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one request, before it is signed.
type request struct {
	method string
	name   string
	body   []byte
	header http.Header
	limit  int64 // bytes of the body of a response with status 200
}

// send sends a request until a response is final, at most s.tries times. It returns the error of the last attempt.
func (s *sender) send(ctx context.Context, r request) (answer, error) {
	repeated := false
	for try := 1; ; try++ {
		a, err := s.sendOnce(ctx, r)
		a.repeated = repeated
		if err == nil && !a.isTemporary() || errors.Is(err, ErrTooLarge) || errors.Is(err, errNotSent) {
			return a, err
		}
		if err == nil {
			err = a.failure()
		}
		repeated = true
		if try == s.tries || !pause(ctx, max(a.retryAfter(), jitter(firstPause<<(try-1)))) {
			return answer{}, fmt.Errorf("after %d attempts: %w", try, err)
		}
	}
}

// jitter returns a random time in [d/2, d), so that many senders do not retry at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

// pause waits, and reports whether the context is still valid.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// errNotSent marks a local failure before the request was sent.
var errNotSent = errors.New("not sent")

// sendOnce signs and sends a request. The error is from the connection, errNotSent or ErrTooLarge.
func (s *sender) sendOnce(ctx context.Context, r request) (answer, error) {
	signed, err := s.sign(ctx, r)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	got, err := s.client.Do(signed)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	defer got.Body.Close()
	if version := got.Header.Get("X-Amz-Version-Id"); version != "" && version != "null" {
		s.versioned.Store(true)
	}
	return readAnswer(got, r)
}

// sign creates the HTTP request with a signature over its headers and body.
func (s *sender) sign(ctx context.Context, r request) (*http.Request, error) {
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := http.NewRequestWithContext(ctx, r.method, s.base.JoinPath(r.name).String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, withoutURL(err)
	}
	maps.Copy(signed.Header, r.header)
	digest := sha256.Sum256(r.body)
	payload := hex.EncodeToString(digest[:])
	signed.Header.Set("X-Amz-Content-Sha256", payload)
	if r.method == http.MethodPut {
		signed.Header.Set("Content-Type", "application/octet-stream")
	}
	// A Signer caches, for a day, the key that it derives from the secret, by access key ID only. Each request gets its
	// own Signer, so that a corrected secret takes effect at once.
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return signed, signer.SignHTTP(ctx, credentials, signed, payload, "s3", s.region, s.now())
}

// readAnswer reads the body, up to the request's limit, or as much of an error response as its code needs.
func readAnswer(got *http.Response, r request) (answer, error) {
	a := answer{status: got.StatusCode, header: got.Header}
	if r.method == http.MethodGet && a.status == http.StatusOK {
		body, err := readBounded(got.Body, got.ContentLength, r.limit)
		a.body = body
		return a, err
	}
	document, err := io.ReadAll(io.LimitReader(got.Body, maxDocument))
	if a.status >= 300 {
		a.code = parseCode(document)
		return a, nil // the status is enough if the document is cut off
	}
	return a, err
}

// withoutURL returns the cause of an error of net/http.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
