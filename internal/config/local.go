package config

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/commandline"
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
// public URL was forgotten: a settings file, a variable of the environment, a database, TLS, nodes, or a listener that other
// machines reach.
func (s *Serve) UseLocalDefaults(f *File) (bool, error) {
	if s.PublicURL != "" {
		return false, nil
	}
	host, port, err := net.SplitHostPort(s.Listen.Listen)
	address, _ := netip.ParseAddr(host)
	local := err == nil && port != "0" && (host == "localhost" || address.IsLoopback())
	if !local || f.Path() != "" || s.Storage != "" || s.NodeListen != "" || s.SpeaksTLS() || hasDeploymentVariable() {
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

// hasDeploymentVariable reports whether the environment contains a setting, or what was meant to be one.
func hasDeploymentVariable() bool {
	return slices.ContainsFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, variablePrefix) && !strings.HasPrefix(name, variablePrefix+"LOG_") && !slices.Contains(otherVariables, name)
	})
}

// defaultData is the default of --data.
const defaultData = "agentledger-data"

// decodeData decodes --data. If the flag is not set and there is no such folder here, commands use the folder of a service
// that serves this machine only, if there is one.
func decodeData(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := commandline.DecodePath(ctx, target); err != nil {
		return err
	}
	if dir, err := userDataDir(); err == nil && target.String() == kong.ExpandPath(defaultData) && !isFolder(target.String()) && isFolder(dir) {
		target.SetString(dir)
	}
	return nil
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
