// Command release builds what operators install: archives, packages, lists of modules, checksums and their signature.
// It also signs the list of the clients' packages, and links that signature into the service.
//
//	release build -version 1.2.3 -out DIR [-platform linux/amd64]
//	release check -version 1.2.3 [-platform linux/amd64] [-out DIR]
//	                                                       build twice, and compare the bytes of every file
//	release install-check DIR                              install the packages of DIR on this Debian, use and remove them
//
// Invariants:
//   - A release is made from the commit that is checked out, never from changes that are not committed.
//   - Nothing is uploaded. The release key is read from the file that AGENTLEDGER_RELEASE_KEY_FILE names; without
//     one the release is unsigned, and the program says so. AGENTLEDGER_CLIENTS_NOTE_FILE names the note
//     /clients/SHA256SUMS.note of a signed release that is built again without its key.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentledger/agentledger/tools/release/installcheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runProgram(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release build|check|install-check, see the package comment")

func runProgram(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.tree, "tree", ".", "the repository")
	flags.StringVar(&o.version, "version", "", "such as 1.2.3")
	flags.StringVar(&o.platform, "platform", "", "one platform such as linux/amd64; all without it")
	flags.StringVar(&o.out, "out", "", "folder of the release")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	o.keyFile, o.noteFile = os.Getenv("AGENTLEDGER_RELEASE_KEY_FILE"), os.Getenv("AGENTLEDGER_CLIENTS_NOTE_FILE")
	switch {
	case args[0] == "build" && o.out != "":
		return buildRelease(ctx, o, out)
	case args[0] == "check":
		return checkReproducible(ctx, o, out)
	case args[0] == "install-check" && flags.NArg() == 1:
		return installcheck.Run(ctx, flags.Arg(0), out)
	}
	return errUsage
}
