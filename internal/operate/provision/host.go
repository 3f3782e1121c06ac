package provision

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// maxOrigin is the longest origin, in bytes.
const maxOrigin = 255

// Host is the first part of every origin: host[:port][path] of the service's
// public URL, in lower case, without a slash at its end. The zero value is none.
type Host string

// ParseHost reads a public URL: http or https, with a host, maybe a port and a
// path, and nothing else. Paths are compared with their case elsewhere and
// origins are in lower case, so a path with capitals is refused.
func ParseHost(publicURL string) (Host, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return "", fmt.Errorf("public URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(publicURL, "?#%") {
		return "", errors.New("public URL: want http or https, a host, and maybe a port and a path")
	}
	h := Host(strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/"))
	for _, c := range h {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune(".-_~:/[]", c) {
			return "", errors.New("public URL: characters must be a-z 0-9 . - _ ~ / in the path, and what hosts have")
		}
	}
	if err := checkAccountOptions(u); err != nil {
		return "", err
	}
	if n := len(h.Origin(id.Organization{})); n > maxOrigin {
		return "", fmt.Errorf("public URL: too long, origins would have %d bytes", n)
	}
	return h, nil
}

// checkAccountOptions refuses a path that clients would change: they remove ., .. and empty parts,
// and an origin is for ever.
func checkAccountOptions(u *url.URL) error {
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
			return errors.New("public URL: no part of the path may be . or .. or empty")
		}
	}
	return nil
}

// Origin returns the checkpoint origin of an organization that is made now.
func (h Host) Origin(o id.Organization) id.Origin {
	return id.Origin(string(h) + "/o/" + o.String())
}
