package nodesdemo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/internal/wait"
)

// ErrNoPostgreSQL says how to get the programs.
var ErrNoPostgreSQL = errors.New("several nodes need PostgreSQL, and the programs of its version 15 or newer are not " +
	"here: install its server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; " +
	"macOS: brew install postgresql), or see the demo of one process, which needs nothing: agentledger demo")

const oldestPostgreSQL = 15

// installation is the programs of PostgreSQL, and the user that they run as.
type installation struct {
	bin     string
	version string              // such as 15.13
	user    *syscall.Credential // nil: the one of this process
}

// findPostgreSQL returns the newest installation on this machine.
func findPostgreSQL() (installation, error) { return newestOf(programFolders()) }

// newestOf returns the installation in the first folder that has one.
func newestOf(folders []string) (installation, error) {
	for _, bin := range folders {
		version, found := versionOf(bin)
		if !found {
			continue
		}
		owner, err := unprivilegedUser()
		return installation{bin: bin, version: version, user: owner}, err
	}
	return installation{}, ErrNoPostgreSQL
}

// programFolders lists where the programs may be, the best first.
func programFolders() []string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian; the pattern is well-formed
	slices.SortFunc(folders, func(a, b string) int { return majorOf(b) - majorOf(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	return folders
}

func majorOf(folder string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // 0 for another name, which is the last
	return n
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)\S*)`)

// versionOf returns the version of the programs in a folder, if all are there and new enough.
func versionOf(bin string) (version string, found bool) {
	for _, name := range []string{"initdb", "postgres", "pg_isready"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", false
		}
	}
	said, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	parts := versionPattern.FindStringSubmatch(string(said))
	if err != nil || parts == nil {
		return "", false
	}
	if major, err := strconv.Atoi(parts[2]); err != nil || major < oldestPostgreSQL {
		return "", false
	}
	return parts[1], true
}

// unprivilegedUser returns the user that a server runs as when this process is root's, because PostgreSQL refuses root.
func unprivilegedUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

// database is a server that runs.
type database struct {
	installed installation
	dir       string // data and socket
	process   *process
	log       tail
}

// serverTime bounds the start of a server, and its end.
const serverTime = time.Minute

// startDatabase makes a cluster and runs it. It is reached by a socket in its own folder alone.
func startDatabase(ctx context.Context, installed installation) (*database, error) {
	dir, err := os.MkdirTemp("", "agentledger-pg-") // short, because the path of a socket is bounded
	if err != nil {
		return nil, err
	}
	d := &database{installed: installed, dir: dir}
	if installed.user != nil {
		err = os.Chown(dir, int(installed.user.Uid), int(installed.user.Gid))
	}
	if err == nil {
		err = d.initialize(ctx)
	}
	if err == nil {
		err = d.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w\n%s", err, d.log.String()), d.stop())
	}
	return d, nil
}

func (d *database) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(d.installed.bin, name), args...)
	c.Dir = "/" // the working folder may be closed to the user
	c.Env = environment("LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = attributes(syscall.SIGQUIT)
	c.SysProcAttr.Credential = d.installed.user
	return c
}

func (d *database) dataFolder() string { return filepath.Join(d.dir, "data") }

func (d *database) initialize(ctx context.Context) error {
	c := d.command(ctx, "initdb", "--pgdata", d.dataFolder(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	c.Stdout, c.Stderr = &d.log, &d.log
	return c.Run()
}

// run starts the server and waits until it takes connections.
func (d *database) run(ctx context.Context) error {
	c := d.command(context.WithoutCancel(ctx), "postgres", "-D", d.dataFolder(), "-k", d.dir, "-c", "listen_addresses=",
		"-c", "max_connections=300", "-c", "shared_buffers=32MB")
	c.Stdout, c.Stderr = &d.log, &d.log
	var err error
	if d.process, err = startProcess(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	for d.process.runs() {
		if d.command(ctx, "pg_isready", "--quiet", "--host", d.dir).Run() == nil {
			return nil
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the server ended")
}

// url is the server's address as its superuser.
func (d *database) url() string {
	return "postgres://postgres@/postgres?" + url.Values{"host": {d.dir}}.Encode()
}

// stop ends the server and removes its files.
func (d *database) stop() error {
	if d.process != nil {
		_ = d.process.signal(syscall.SIGINT) // its files go, however it ended
	}
	return os.RemoveAll(d.dir)
}
