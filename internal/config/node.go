package config

import (
	"errors"
	"net/url"
	"strings"
)

// validateNode checks the settings of a service that runs as several nodes.
func (s Serve) validateNode() error {
	if s.NodeListen == "" && s.NodeURL == "" {
		return nil
	}
	u, err := url.Parse(s.NodeURL)
	switch {
	case s.NodeListen == "" || s.NodeURL == "":
		return errors.New("--node-listen and --node-url must be set together")
	case s.Storage == "":
		return errors.New("--node-listen: several nodes need one database (--storage), " +
			"because the embedded store belongs to one process")
	case s.ReadOnly:
		return errors.New("--node-listen is not allowed with --read-only: a node writes")
	case strings.HasPrefix(s.NodeListen, "unix:"):
		return errors.New("--node-listen must be a network address: other machines cannot reach a Unix socket")
	case err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil || u.ForceQuery:
		return errors.New("--node-url must be https://HOST:PORT and nothing else")
	}
	return nil
}
