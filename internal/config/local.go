package config

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// errNoPublicURL means that the settings lack the public URL, and are not those of a service for this machine only.
var errNoPublicURL = errors.New("missing flags: --public-url=URL")

// RequirePublicURL returns an error if there is no public URL.
func (i Identity) RequirePublicURL() error {
	if i.PublicURL == "" {
		return errNoPublicURL
	}
	return nil
}

// UseLocalDefaults completes the settings of a service without a public URL, so that it serves this machine only. It
// reports whether it did. It returns an error if other settings show that the service is meant for others, in which case a
// public URL was forgotten.
func (s *Serve) UseLocalDefaults(f *File) (bool, error) {
	if s.PublicURL != "" {
		return false, nil
	}
	host, port, err := net.SplitHostPort(s.Listen.Listen)
	address, _ := netip.ParseAddr(host)
	local := err == nil && port != "0" && (host == "localhost" || address.IsLoopback())
	if !local || f.Path() != "" || s.isDeployment() || hasDeploymentVariable() {
		return false, errNoPublicURL
	}
	s.PublicURL = "http://localhost:" + port
	if s.Data == kong.ExpandPath(defaultData) && !isFolder(s.Data) {
		if dir, err := userDataDir(); err == nil {
			s.Data = dir
		}
	}
	return true, nil
}

// isDeployment reports whether flags were given that a service for this machine only has no use for.
func (s *Serve) isDeployment() bool {
	return s.Storage != "" || s.NodeListen != "" || s.SpeaksTLS() || s.ClientAddressHeader != "" || s.SMTP != "" || s.Archive != "" ||
		s.Anchors != "" || s.Directory != "" || s.LogListContact != "" || s.WitnessPolicyFile != "" || s.Signup != "off"
}

// hasDeploymentVariable reports whether the environment contains a setting, or what was meant to be one.
func hasDeploymentVariable() bool {
	return slices.ContainsFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, variablePrefix) && name != variablePrefix+"LOG_LEVEL" && name != variablePrefix+"LOG_FORMAT" && !slices.Contains(otherVariables, name)
	})
}

// defaultData is the default of --data.
const defaultData = "agentledger-data"

// UseUserFolder is for commands that work on an existing store: if --data is its default and there is no such folder here, they
// use the folder of a service that serves this machine only, if there is one, and say so on stderr.
func (s *Store) UseUserFolder(stderr io.Writer) error {
	dir, err := userDataDir()
	if err != nil || s.Storage != "" || s.Data != kong.ExpandPath(defaultData) || isFolder(s.Data) || !isFolder(dir) {
		return nil // as far as is known, there is no such folder
	}
	s.Data = dir
	_, err = fmt.Fprintln(stderr, "agentledger: using the data folder", dir)
	return err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// userDataDir returns the folder for the data of a service in the directories of the user.
func userDataDir() (string, error) {
	dir := os.Getenv("XDG_DATA_HOME")
	if filepath.IsAbs(dir) && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(dir, "agentledger"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(home, ".local", "share")
	switch runtime.GOOS {
	case "darwin":
		parent = filepath.Join(home, "Library", "Application Support")
	case "windows":
		if parent, err = os.UserCacheDir(); err != nil { // %LocalAppData%
			return "", err
		}
	}
	return filepath.Join(parent, "agentledger"), nil
}
