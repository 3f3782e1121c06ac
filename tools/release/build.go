package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tools/release/archive"
	"github.com/agentledger/agentledger/tools/release/chart"
	"github.com/agentledger/agentledger/tools/release/image"
	"github.com/agentledger/agentledger/web"
)

// options are the options of a build.
type options struct {
	tree, version, platform, out string

	keyFile  string // the release key; "" for an unsigned release
	noteFile string // the note of the clients' packages, to build a signed release again without its key
	cache    string // Go's build cache, "" for the usual one
}

// release is a release in progress.
type release struct {
	options
	source programSource
	time   time.Time       // of the commit
	served []image.Program // the service for Linux, by architecture
	out    io.Writer
}

// versionForm accepts versions that npm, pip and Go can compare.
var versionForm = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.(0|[1-9]\d*))?$`)

// buildRelease creates the folder o.out, which must not exist.
func buildRelease(ctx context.Context, o options, out io.Writer) (err error) {
	if !versionForm.MatchString(o.version) {
		return fmt.Errorf("version %q: must be like 1.2.3 or 1.2.3-rc.1", o.version)
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "agentledger-release-")
	if err != nil {
		return fmt.Errorf("create work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r := &release{options: o, out: out}
	if err := r.exportSource(ctx, filepath.Join(work, "source")); err != nil {
		return err
	}
	if err := r.embedClients(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(o.out, 0o755); err != nil {
		return fmt.Errorf("create release folder: %w", err)
	}
	for _, t := range programTargets(o.platform) {
		if err := r.addTarget(ctx, t, filepath.Join(work, "programs")); err != nil {
			return err
		}
	}
	if err := r.addImage(); err != nil {
		return err
	}
	if err := r.addVerifier(); err != nil {
		return err
	}
	if err := chart.Write(r.options.out, r.source.Dir, r.version, r.time); err != nil {
		return err
	}
	return r.addSums(ctx)
}

// exportSource copies the files of the commit into dir, and reads its hash and time.
func (r *release) exportSource(ctx context.Context, dir string) error {
	changed, err := r.runGit(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("there are uncommitted changes:\n%s", changed)
	}
	said, err := r.runGit(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read time of commit: %w", err)
	}
	r.time = time.Unix(unix, 0).UTC()
	r.source = programSource{Dir: dir, Version: r.version, Commit: commit, Cache: r.cache}
	files, err := r.runGit(ctx, "archive", "--format=tar", "HEAD")
	if err != nil {
		return err
	}
	return extractTar(files, dir)
}

func (r *release) runGit(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.tree
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return said, nil
}

func extractTar(content []byte, dir string) error {
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		head, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy source: %w", err)
		}
		if head.Typeflag != tar.TypeReg {
			continue // folders are created with their files
		}
		name := filepath.Join(dir, filepath.FromSlash(head.Name))
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(name, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("copy source: %w", err)
		}
	}
}

// addTarget adds the archive, the list of modules and the packages of one program.
func (r *release) addTarget(ctx context.Context, t programTarget, work string) error {
	file, err := r.source.Build(ctx, t, work)
	if err != nil {
		return err
	}
	if err := errors.Join(r.checkSize(t, file), r.checkNote(t, file)); err != nil {
		return err
	}
	modules, err := describeInventory(file, t.Name, r.version)
	if err != nil {
		return err
	}
	name := t.Name + "_" + r.version + "_" + t.OS + "_" + t.Arch
	if err := os.WriteFile(filepath.Join(r.options.out, name+".cdx.json"), modules, 0o644); err != nil {
		return fmt.Errorf("write modules: %w", err)
	}
	files := []archive.File{{Name: name + "/" + t.Executable(), Source: file, Mode: 0o755}}
	for _, d := range t.Documents() {
		files = append(files, archive.File{Name: name + "/" + filepath.Base(d), Source: filepath.Join(r.source.Dir, d), Mode: 0o644})
	}
	if t.OS == "windows" {
		return archive.WriteZip(filepath.Join(r.options.out, name+".zip"), files, r.time)
	}
	if err := archive.WriteTarGz(filepath.Join(r.options.out, name+".tar.gz"), files, r.time); err != nil || t.OS != "linux" {
		return err
	}
	if t.Name == "agentledger" {
		r.served = append(r.served, image.Program{Arch: t.Arch, File: file})
	}
	_, err = linuxPackage{Name: t.Name, Arch: t.Arch, Version: r.version, Program: file, Source: r.source.Dir,
		Time: r.time}.WriteAll(r.options.out)
	return err
}

// addImage adds the container image of the service, for each architecture of Linux that was built.
func (r *release) addImage() error {
	if len(r.served) == 0 {
		return nil
	}
	d := image.Description{Version: r.version, Commit: r.source.Commit, Time: r.time}
	if err := image.Write(filepath.Join(r.options.out, "agentledger_"+r.version+"_oci.tar"), d, r.served); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

// Maximum sizes of the programs for linux/amd64 in bytes. The goals are 12 MB and 40 MB. What keeps the programs above them is that
// kong and text/template call methods by names that are known at run time only, so the linker keeps every exported method of a type in use.
var sizeBounds = map[string]int64{"aps": 13_550_000, "agentledger": 59_300_000}

func (r *release) checkSize(t programTarget, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("measure program: %w", err)
	}
	fmt.Fprintf(r.out, "%-28s %5.1f MB\n", t, float64(info.Size())/1e6)
	if bound := sizeBounds[t.Name]; t.OS == "linux" && t.Arch == "amd64" && info.Size() > bound {
		return fmt.Errorf("%s has %d bytes, more than %d", t, info.Size(), bound)
	}
	return nil
}

// addVerifier adds the page that checks documents offline, and the list of its verifier's files. The page shows the
// SHA-256 of the list, which is also in SHA256SUMS.
func (r *release) addVerifier() error {
	page, list, err := web.OfflinePage()
	if err != nil {
		return fmt.Errorf("render offline page: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.options.out, "agentledger-check.html"), page, 0o644),
		os.WriteFile(filepath.Join(r.options.out, "agentledger-check.verifier"), list, 0o644))
}

// addSums adds the list of files, and signs it if there is a key.
func (r *release) addSums(ctx context.Context) error {
	list, err := computeSums(ctx, r.options.out)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.options.out, releasefiles.ListName), []byte(list), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	if r.keyFile == "" {
		_, err := fmt.Fprintln(r.out, "UNSIGNED: AGENTLEDGER_RELEASE_KEY_FILE names no key")
		return err
	}
	key, err := readSumsKey(r.keyFile)
	if err != nil {
		return err
	}
	note, err := key.SignNote(list)
	if err != nil {
		return fmt.Errorf("sign checksums: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.options.out, releasefiles.NoteName), note.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write signature: %w", err)
	}
	_, err = fmt.Fprintln(r.out, "signed by", key.Verifier())
	return err
}
