package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// checkReproducible builds the release twice in two folders, compares every file and checks the archives. The second
// build of a whole release has an empty build cache; that of one platform shares the cache, because a build without one
// takes minutes. The first build remains in o.out if it is set.
func checkReproducible(ctx context.Context, o options, out io.Writer) (err error) {
	work, err := os.MkdirTemp("", "agentledger-twice-")
	if err != nil {
		return fmt.Errorf("create work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	o.keyFile, o.noteFile = "", "" // signatures are not compared
	var lists [2]string
	for i := range lists {
		if i == 1 || o.out == "" {
			o.out = filepath.Join(work, fmt.Sprintf("build-%d", i), "release")
		}
		if i == 1 && o.platform == "" {
			o.cache = filepath.Join(work, "cache")
		}
		if err := buildRelease(ctx, o, out); err != nil {
			return err
		}
		if err := checkContents(o.out, o.version, programTargets(o.platform)); err != nil {
			return fmt.Errorf("check archives: %w", err)
		}
		if lists[i], err = computeSums(ctx, o.out); err != nil {
			return err
		}
	}
	if lists[0] != lists[1] {
		return fmt.Errorf("two builds differ:\n%s\n%s", lists[0], lists[1])
	}
	_, err = fmt.Fprintf(out, "two builds have the same bytes:\n%s", lists[0])
	return err
}
