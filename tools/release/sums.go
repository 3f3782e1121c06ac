package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tlog"
)

// computeSums returns the list of a release's files, which aps verify-release checks by the rules of package
// releasefiles. It contains each file of the folder once, sorted by name, except for the list itself and its signed
// note. It returns an error for a name that releasefiles would reject.
func computeSums(ctx context.Context, folder string) (string, error) {
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return "", fmt.Errorf("sum files: %w", err)
	}
	defer dir.Close()
	names, err := releasefiles.List{}.Unlisted(dir)
	if err != nil {
		return "", fmt.Errorf("sum files: %w", err)
	}
	var list strings.Builder
	for _, name := range names {
		sum, err := releasefiles.Sum(ctx, dir, name)
		if err != nil {
			return "", fmt.Errorf("sum files: %w", err)
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, name)
	}
	if _, err := releasefiles.ParseFiles(list.String()); err != nil {
		return "", fmt.Errorf("sum files: %w", err)
	}
	return list.String(), nil
}

// readSumsKey reads the private key that signs the list, in the format that aps keygen --out writes.
func readSumsKey(file string) (tlog.SignerKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	seed, err := edkey.ParseSeed(strings.TrimSpace(string(text)))
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	return tlog.NewSignerKey(releasefiles.KeyName, private)
}
