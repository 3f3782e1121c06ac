package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// errWrongRelease means that a file, the list or its signature does not match the release.
var errWrongRelease = errors.New("not the release")

// releaseCommands are the commands about releases.
type releaseCommands struct {
	Verify  releaseVerifyCommand  `cmd:"" name:"verify-release" help:"Verify files of a release offline."`
	Version releaseVersionCommand `cmd:"" help:"Print the version of this program, as the flag --version does."`
}

// releaseVerifyCommand is verify-release.
type releaseVerifyCommand struct {
	Path string `arg:"" complete:"files" help:"Folder of a release, or one of its files next to SHA256SUMS.note."`
	Key  string `env:"APS_RELEASE_KEY" placeholder:"VKEY" help:"The release key, from a source that you trust." type:"vkey"`
}

// Help implements kong.HelpProvider.
func (*releaseVerifyCommand) Help() string {
	return `Status 0: the files are those that the key signed. 1: one differs, is missing or is not on the list. ` +
		`2: can't tell: no key, not signed, signed by another key, or a file that can't be read. ` +
		`Without a key files can be whole, but nothing says whose they are.

Of a folder each file has to be on the list and each file of the list there. Nothing is fetched. ` +
		`An old release is as well signed as the newest one: the names of the files have its version.`
}

// releaseReport is the JSON output of verify-release.
type releaseReport struct {
	OK       bool         `json:"ok"`
	SignedBy string       `json:"signed_by,omitzero"` // name and key hash of the given key, or "" if it has not signed
	Files    []fileReport `json:"files"`
	Error    string       `json:"error,omitzero"` // of the list or its signature
}

type fileReport struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitzero"`
}

// Run prints the result of each file. The error wraps errWrongRelease if a file is wrong.
func (c *releaseVerifyCommand) Run(ctx context.Context, out *people.Terminal) error {
	key, err := c.parseKey()
	if err != nil {
		return err
	}
	dir, name, err := c.openFolder()
	if err != nil {
		return err
	}
	defer dir.Close()
	list, err := releasefiles.ReadList(dir)
	if err != nil {
		return tellWrong(c.explainMissing(err))
	}
	var r releaseReport
	signed := r.checkSignature(list, key)
	differs, err := r.checkFiles(ctx, dir, list, name)
	if err != nil {
		return err
	}
	r.OK = signed == nil && differs == nil
	if err := r.print(out); err != nil {
		return err
	}
	if differs != nil {
		return tellWrong(differs)
	}
	return tellWrong(signed)
}

// openFolder opens the folder of the list. It returns the name of the only file to check, or "" for all.
func (c *releaseVerifyCommand) openFolder() (dir *os.Root, name string, err error) {
	folder := c.Path
	if info, err := os.Stat(c.Path); err != nil || !info.IsDir() { // a missing file may be on the list
		folder, name = filepath.Split(filepath.Clean(c.Path))
	}
	if dir, err = os.OpenRoot(filepath.Clean(folder)); err != nil {
		return nil, "", c.explainMissing(err)
	}
	return dir, name, nil
}

// explainMissing adds to the error of a missing file what the argument is.
func (c *releaseVerifyCommand) explainMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (<path>: expected the folder of a release, which contains %s, or one of its files, got %q)", err, releasefiles.ListName, c.Path)
	}
	return err
}

func (c *releaseVerifyCommand) parseKey() (key tlog.VerifierKey, err error) {
	if c.Key == "" {
		return key, nil
	}
	if key, err = tlog.ParseVerifierKey(strings.TrimSpace(c.Key)); err != nil {
		return key, fmt.Errorf("--key: %w", err)
	}
	if key.Name() != releasefiles.KeyName {
		return key, fmt.Errorf("--key: %s signs no releases: the name of a release key is %s",
			textcheck.Printable(key.Name()), releasefiles.KeyName)
	}
	return key, nil
}

// checkSignature checks the list under the key, which may be zero.
func (r *releaseReport) checkSignature(list releasefiles.List, key tlog.VerifierKey) error {
	err := list.CheckSignature(key)
	switch {
	case err == nil:
		r.SignedBy = verify.Signer(key.Name(), key.Hash())
		return nil
	case key.Name() == "" && !errors.Is(err, releasefiles.ErrUnsigned):
		err = errors.New("the key of the release is required: set --key")
	}
	r.Error = err.Error()
	return err
}

// checkFiles adds the named file, or all files of the list and the folder. It returns the first difference.
func (r *releaseReport) checkFiles(ctx context.Context, dir *os.Root, list releasefiles.List,
	name string) (differs, err error) {
	selected := list.Files
	var unlisted []string
	if name == "" {
		unlisted, err = list.Unlisted(dir)
	} else if f, listed := list.Find(name); listed {
		selected = []releasefiles.File{f}
	} else {
		selected, unlisted = nil, []string{name}
	}
	if err != nil {
		return nil, err
	}
	syncs.BeginStep(ctx, "reading", "bytes")
	for _, f := range selected {
		found := f.Check(ctx, dir)
		if found != nil && !errors.Is(found, releasefiles.ErrWrong) {
			return nil, found
		}
		differs = cmp.Or(differs, r.addFile(f.Name, found))
	}
	for _, name := range unlisted {
		differs = cmp.Or(differs, r.addFile(name, fmt.Errorf("not on the list: %w", releasefiles.ErrWrong)))
	}
	return differs, nil
}

// addFile adds the result of a file, and returns it with the name.
func (r *releaseReport) addFile(name string, found error) error {
	if found == nil {
		r.Files = append(r.Files, fileReport{Name: name, OK: true})
		return nil
	}
	r.Files = append(r.Files, fileReport{Name: name, Error: found.Error()})
	return fmt.Errorf("%s: %w", name, found)
}

func (r *releaseReport) print(out *people.Terminal) error {
	if out.JSON {
		return out.PrintJSON(r)
	}
	var lines []string
	if r.SignedBy != "" {
		lines = append(lines, "ok    list signed by "+r.SignedBy)
	} else {
		lines = append(lines, "--    "+textcheck.Printable(r.Error))
	}
	for _, f := range r.Files {
		if f.OK {
			lines = append(lines, "ok    "+f.Name)
		} else {
			lines = append(lines, "FAIL  "+textcheck.Printable(f.Name+": "+f.Error))
		}
	}
	return out.PrintLine("%s", strings.Join(lines, "\n"))
}

// tellWrong distinguishes files that do not match the release from errors that prove nothing.
func tellWrong(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, releasefiles.ErrWrong):
		return fmt.Errorf("%w: %s", errWrongRelease, textcheck.Printable(err.Error()))
	}
	return fmt.Errorf("can't tell: %s", textcheck.Printable(err.Error()))
}
