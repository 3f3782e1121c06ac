package installcheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/agentledger/agentledger/tools/release/image"
)

// checkImage runs the image as a container does, with its user and only its files, but without a container engine. The
// service creates an organization, and writes only to its data folder.
func (c *check) checkImage(ctx context.Context) (err error) {
	found, err := filepath.Glob(filepath.Join(c.dir, "agentledger_*_oci.tar"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s must contain exactly one image", c.dir)
	}
	root := filepath.Join(c.work, "image")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(c.work, 0o755); err != nil { // so that the image's user can enter it
		return err
	}
	config, err := image.Unpack(found[0], runtime.GOARCH, root)
	if err != nil {
		return err
	}
	unmount, err := addSystemFiles(root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmount()) }()
	before, err := filesOf(root)
	if err != nil {
		return err
	}
	args := append(config.Cmd, "--public-url", "http://localhost", "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", "")
	s := &service{cmd: exec.CommandContext(ctx, config.Entrypoint[0], args...)}
	s.cmd.Path, s.cmd.Err = config.Entrypoint[0], nil // a path in the image, not on this machine
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = "/", config.Env, os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: image.User, Gid: image.User}}
	if err := s.awaitServing(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), wantDataAlone(root, before)) }()
	r, err := http.Get(s.url + "/readyz")
	if err != nil {
		return err
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		return fmt.Errorf("ready: got %d", r.StatusCode)
	}
	_, err = s.setUp(ctx)
	return err
}

// addSystemFiles adds what every container has: /proc and /dev/null, which the program needs to start itself again for
// passwords.
func addSystemFiles(root string) (unmount func() error, err error) {
	proc, dev := filepath.Join(root, "proc"), filepath.Join(root, "dev")
	null := filepath.Join(dev, "null")
	const character, major, minor = syscall.S_IFCHR | 0o666, 1, 3
	if err := errors.Join(os.Mkdir(proc, 0o555), os.Mkdir(dev, 0o755)); err != nil {
		return nil, err
	}
	if err := errors.Join(syscall.Mknod(null, character, major<<8|minor), os.Chmod(null, 0o666)); err != nil {
		return nil, fmt.Errorf("create /dev/null: %w", err)
	}
	if err := syscall.Mount("proc", proc, "proc", 0, ""); err != nil {
		return nil, fmt.Errorf("mount proc: %w", err)
	}
	return func() error { return syscall.Unmount(proc, 0) }, nil
}

// filesOf returns the names of all files, with their sizes.
func filesOf(root string) (map[string]int64, error) {
	all := make(map[string]int64)
	return all, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path == filepath.Join(root, "proc") {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			all[strings.TrimPrefix(path, root)] = info.Size()
		}
		return err
	})
}

// wantDataAlone checks that only the data folder has new files, and that the others are unchanged.
func wantDataAlone(root string, before map[string]int64) error {
	after, err := filesOf(root)
	if err != nil {
		return err
	}
	written := 0
	for name, size := range after {
		old, was := before[name]
		switch inData := strings.HasPrefix(name, image.DataDir+"/"); {
		case inData:
			written++
		case !was || old != size:
			return fmt.Errorf("the service wrote %s", name)
		}
	}
	if written == 0 {
		return errors.New("the service wrote no data")
	}
	return nil
}
