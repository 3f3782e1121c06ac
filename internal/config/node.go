package config

import (
	"errors"
	"net/url"
	"strings"
)

// validateNode checks the settings of one of several nodes.
func (s Serve) validateNode() error {
	if s.NodeListen == "" && s.NodeURL == "" {
		return nil
	}
	u, err := url.Parse(s.NodeURL)
	switch {
	case s.NodeListen == "" || s.NodeURL == "":
		return errors.New("--node-listen and --node-url belong together")
	case s.Storage == "":
		return errors.New("--node-listen: several nodes need one database (--storage), " +
			"because the embedded store is one process's")
	case s.ReadOnly:
		return errors.New("--node-listen: a node writes; a read-only service is none")
	case strings.HasPrefix(s.NodeListen, "unix:"):
		return errors.New("--node-listen: other machines reach no socket of this one")
	case err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil || u.ForceQuery:
		return errors.New("--node-url: want https://HOST:PORT and no more")
	}
	return nil
}
