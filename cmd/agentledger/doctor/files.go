package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Rights of the owner.
const (
	readable = 0o400 // of a file
	listable = 0o500 // of a folder
	writable = 0o700 // of a folder
)

// privateFile is a file or folder that only its owner may access.
type privateFile struct {
	what, path string
	needed     bool        // it must exist before a start
	owner      fs.FileMode // the rights that the service needs
}

// checkFiles checks modes and owners, and the master key of the store.
func checkFiles(_ context.Context, c config.Serve) (found []Finding) {
	looked := 0
	for _, f := range privateFiles(c) {
		finding, there := judgeFile(f)
		if there {
			looked++
		}
		if finding != nil {
			found = append(found, *finding)
		}
	}
	found = append(found, checkMasterKey(c)...)
	found = append(found, checkSocketFolders(c)...)
	if len(found) == 0 {
		found = append(found, good("%s private to the user of the service", textcheck.Count(looked, "file or folder is", "files and folders are")))
	}
	return found
}

// privateFiles are the private files that the settings name.
func privateFiles(c config.Serve) []privateFile {
	folder := fs.FileMode(writable)
	if c.ReadOnly {
		folder = listable
	}
	all := []privateFile{{"data directory", c.Data, false, folder},
		{"folder of the anchors", c.AnchorsDir(), false, folder},
		{"store", c.DatabaseDir(), false, folder}, {"master key", c.MasterKeyPath(), false, readable},
		{"platform secret", c.PlatformSecretPath(), c.PlatformSecretFile != "" && c.ReadOnly, readable}}
	for _, path := range c.OlderMasterKeyFile {
		all = append(all, privateFile{"older master key", path, true, readable})
	}
	if c.TLSKey != "" {
		all = append(all, privateFile{"private key of the certificate", c.TLSKey, true, readable})
	}
	return all
}

// judgeFile returns a finding about a file, or nil, and whether the file exists.
func judgeFile(f privateFile) (found *Finding, there bool) {
	info, err := os.Stat(f.path)
	problem := func(finding Finding) *Finding { return &finding }
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.needed:
		return problem(attend("restore the file, or name another one", "%s: there is no %s", f.what, f.path)), false
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		return problem(attend("run the command as the user of the service", "%s: %v", f.what, err)), false
	}
	if !info.IsDir() && info.Mode().Perm()&0o040 != 0 && secret.CheckAccess(info) == nil {
		return nil, true // readable by the group, as Kubernetes mounts secrets
	}
	if owner, known := ownerOf(info); known && owner != os.Geteuid() {
		return problem(attend(fmt.Sprintf("run as the user of the service, or chown %d %s", os.Geteuid(), f.path),
			"%s: %s belongs to user %d, but this is user %d", f.what, f.path, owner, os.Geteuid())), true
	}
	return judgeMode(f, info.Mode().Perm(), os.Geteuid()), true
}

// judgeMode returns a finding about the mode of a file of that user, or nil. Root needs no rights.
func judgeMode(f privateFile, mode fs.FileMode, user int) *Finding {
	wrong := ""
	switch {
	case mode&0o077 != 0:
		wrong = "other users may use it"
	case mode&f.owner != f.owner && user != 0:
		wrong = "the service can't use it"
	default:
		return nil
	}
	finding := attend(fmt.Sprintf("chmod %o %s", mode&^0o077|f.owner, f.path),
		"%s: %s has mode %04o: %s", f.what, f.path, mode, wrong)
	return &finding
}

// checkSettingsFiles finds files of settings that users other than this one and root can change. Commands reject files
// that every user can change; this check also covers groups, owners and folders.
func checkSettingsFiles(c config.Serve, settings string) (found []Finding) {
	for _, f := range []struct{ what, path string }{{"settings file", settings},
		{"file of the witnesses", c.WitnessPolicyFile}, {"certificate", c.TLSCert}} {
		if f.path == "" {
			continue
		}
		info, err := os.Stat(f.path)
		if err != nil {
			continue // other checks read it
		}
		folder, err := os.Stat(filepath.Dir(f.path))
		if err != nil {
			continue
		}
		if finding := judgeSettingsFile(f.what, f.path, info, folder); finding != nil {
			finding.Check = "files"
			found = append(found, *finding)
		}
	}
	return found
}

// judgeSettingsFile returns a finding about a file of settings and its folder, or nil.
func judgeSettingsFile(what, path string, info, folder fs.FileInfo) *Finding {
	owner, known := ownerOf(info)
	finding := Finding{}
	switch mode := info.Mode().Perm(); {
	case secret.CheckSettings(info) != nil:
		finding = attend("chmod o-w "+path, "%s: %s: %v", what, path, secret.CheckSettings(info))
	case known && owner != 0 && owner != os.Geteuid() && os.Geteuid() != 0:
		finding = attend(fmt.Sprintf("chown root %s, or run as its owner", path),
			"%s: %s belongs to the user %d, who can change it", what, path, owner)
	case folder.Mode()&0o002 != 0 && folder.Mode()&fs.ModeSticky == 0 && secret.ModesAreReal:
		finding = attend("chmod o-w "+filepath.Dir(path), "%s: every user can replace %s, because its folder has mode %04o",
			what, path, folder.Mode().Perm())
	case mode&0o020 != 0 && secret.ModesAreReal:
		finding = advise("chmod g-w "+path, "%s: the group of %s can change it (mode %04o)", what, path, mode)
	default:
		return nil
	}
	return &finding
}

// checkMasterKey finds a store whose master key is missing. It cannot be started, and without the key everything is lost.
func checkMasterKey(c config.Serve) []Finding {
	if secret.Getenv(config.MasterKeyVariable) != "" || len(c.OlderMasterKeyFile) > 0 {
		return nil
	}
	_, noStore := os.Stat(c.DatabaseDir())
	_, noKey := os.Stat(c.MasterKeyPath())
	if noStore == nil && errors.Is(noKey, fs.ErrNotExist) {
		return []Finding{attend("restore the key from its copy: without it no log can be read or written",
			"there is a store, but no master key at %s", c.MasterKeyPath())}
	}
	return nil
}

// checkSocketFolders finds missing folders of sockets.
func checkSocketFolders(c config.Serve) (found []Finding) {
	for _, address := range []string{c.Listen.Listen, c.IDListen, c.MetricsListen} {
		path, is := strings.CutPrefix(address, "unix:")
		if !is {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			found = append(found, attend("create the folder for the service's user (RuntimeDirectory= in the unit)",
				"the folder of the socket %s does not exist", path))
		}
	}
	return found
}
