package provision

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// maxOrigin is the length of the longest origin, in bytes.
const maxOrigin = 255

// Host is the first part of every origin: host[:port][path] of the service's public URL, in lower case, without a
// trailing slash. The zero value means that there is none.
type Host string

// ParseHost parses a public URL: http or https, a host, an optional port and path, and nothing else. It rejects paths
// with capital letters, because origins are in lower case but other programs compare paths with their case.
func ParseHost(publicURL string) (Host, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return "", fmt.Errorf("public URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(publicURL, "?#%") {
		return "", errors.New("public URL must be http or https with a host, and optionally a port and a path")
	}
	h := Host(strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/"))
	for _, c := range h {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune(".-_~:/[]", c) {
			return "", errors.New("public URL contains a character that is not allowed: the path may contain a-z 0-9 . - _ ~ /")
		}
	}
	if err := checkPath(u); err != nil {
		return "", err
	}
	if n := len(h.Origin(id.Organization{})); n > maxOrigin {
		return "", fmt.Errorf("public URL is too long: origins would have %d bytes", n)
	}
	return h, nil
}

// checkPath rejects a port that is out of range and a path that clients would normalize: they remove ., .. and empty
// parts, and an origin is permanent.
func checkPath(u *url.URL) error {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("public URL: the port must be from 1 to 65535")
		}
	}
	path := strings.TrimRight(u.Path, "/")
	if path == "" {
		return nil
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New("public URL: the path must not contain . or .. or empty parts")
		}
	}
	return nil
}

// Origin returns the checkpoint origin of a new organization.
func (h Host) Origin(o id.Organization) id.Origin {
	return id.Origin(string(h) + "/o/" + o.String())
}
