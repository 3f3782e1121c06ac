package objects

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
)

// address is a parsed URL s3://bucket/prefix?endpoint=…&region=…&credentials=…&versions=expire.
type address struct {
	base        *url.URL // of the prefix, ends in "/"
	region      string
	credentials string // path of a file, or ""
	expires     bool   // versions=expire: the operator deletes replaced versions
}

var (
	bucketName = lazyRegexp(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = lazyRegexp(`^[a-z0-9-]{1,64}$`)
)

// lazyRegexp compiles an expression when it is first used, because most services use no object store.
func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// parseAddress parses and checks a URL. Errors contain names of parameters, but no values.
func parseAddress(u *url.URL) (address, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return address{}, errors.New("objects: the parameters of the store's URL are malformed")
	}
	for name, values := range query {
		switch name {
		case "endpoint", "region", "credentials", "versions":
		default:
			return address{}, errors.New("objects: the store's URL has an unknown parameter: only" +
				" endpoint, region, credentials and versions are allowed")
		}
		if len(values) != 1 || values[0] == "" {
			return address{}, fmt.Errorf("objects: the parameter %s must have one value", name)
		}
	}
	a := address{region: query.Get("region"), credentials: query.Get("credentials"), expires: query.Has("versions")}
	if a.expires && query.Get("versions") != "expire" {
		return address{}, errors.New("objects: the parameter versions must be \"expire\"")
	}
	if a.base, err = a.baseURL(u, query.Get("endpoint")); err != nil {
		return address{}, err
	}
	if !regionName().MatchString(a.region) {
		return address{}, errors.New("objects: the parameter region is not a valid region name")
	}
	return a, nil
}

// baseURL returns the URL of the prefix at AWS, or at an endpoint with the bucket in the path. It sets the default
// region of an endpoint.
func (a *address) baseURL(u *url.URL, endpoint string) (*url.URL, error) {
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" && checkName(prefix) != nil || len(prefix) > maxSegment {
		return nil, errors.New("objects: the prefix in the store's URL is invalid")
	}
	if !bucketName().MatchString(u.Host) {
		return nil, errors.New("objects: the bucket in the store's URL is invalid")
	}
	if endpoint == "" {
		if a.region == "" {
			return nil, errors.New("objects: the parameter region or endpoint is required")
		}
		return amazonURL(u.Host, a.region, prefix), nil
	}
	if a.region == "" {
		a.region = "us-east-1" // other servers expect this name in a signature
	}
	base, err := url.Parse(endpoint)
	if err != nil || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.User != nil || base.RawQuery != "" {
		return nil, errors.New("objects: the parameter endpoint must be https:// with a host")
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(base.Hostname())) {
		return nil, errors.New("objects: the endpoint must use https, because it is not on this machine")
	}
	return &url.URL{Scheme: base.Scheme, Host: base.Host, Path: folderPath(u.Host, prefix)}, nil
}

// amazonURL puts the bucket into the host name. A bucket with a dot is put into the path, because the certificate of
// the host does not cover it.
func amazonURL(bucket, region, prefix string) *url.URL {
	host := "s3." + region + ".amazonaws.com"
	if strings.Contains(bucket, ".") {
		return &url.URL{Scheme: "https", Host: host, Path: folderPath(bucket, prefix)}
	}
	return &url.URL{Scheme: "https", Host: bucket + "." + host, Path: folderPath(prefix)}
}

// folderPath joins parts to a path that begins and ends with "/".
func folderPath(parts ...string) string {
	p := path.Join("/", path.Join(parts...))
	if p == "/" {
		return p
	}
	return p + "/"
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
