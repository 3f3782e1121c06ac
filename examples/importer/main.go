// Importer is a job that holds no agent key: it copies the files of a folder to another
// one and reports that as a run, each file a step. Kill it, or the service, at any moment
// and start it again: it finds its run, and does not copy finished files again.
//
//	APS_URL=… APS_TOKEN=… importer -run import-2026-11-20 -from in -to out
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/runs"
)

func main() {
	run := flag.String("run", "import", "name of the run: the same name goes on with the same run")
	from := flag.String("from", "in", "folder with the files")
	to := flag.String("to", "out", "folder that they go to")
	flag.Parse()
	if err := importFolder(context.Background(), *run, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func importFolder(ctx context.Context, name, from, to string) error {
	service, err := client.New(client.Config{BaseURL: os.Getenv("APS_URL"), Token: os.Getenv("APS_TOKEN")})
	if err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	planned := 2 * len(files) // each with its result
	run, err := runs.Start(ctx, service, runs.Options{
		Workflow: runs.Workflow{Name: "import", Version: "1", Tool: "importer"}, External: name, Planned: &planned,
	})
	if err != nil {
		return err
	}
	if run.Status != runs.Running {
		fmt.Printf("%s: the run %s has ended before\n", run.Status, name)
		return nil
	}
	end := runs.Ending{Status: runs.Succeeded}
	for _, f := range files {
		err := importFile(ctx, run, filepath.Join(from, f.Name()), filepath.Join(to, f.Name()))
		var denied *client.DeniedError
		switch {
		case errors.As(err, &denied):
			fmt.Printf("%s: %s\n", f.Name(), denied.Reason)
			end = runs.Ending{Status: runs.Failed, Error: "some files may not be imported"}
		case err != nil:
			return err // start it again
		}
	}
	result, err := run.Complete(ctx, end)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d steps, run_root %s\n", result.Status, result.Recorded, result.Root)
	return nil
}

// importFile copies one file, as a step of the run whose payload says which bytes.
func importFile(ctx context.Context, run *runs.Run, from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	step := runs.Step{
		Key: filepath.Base(from), Tool: "acme.files.import",
		Payload: map[string]any{"bytes": len(content), "sha256": hex.EncodeToString(sum[:])},
	}
	_, err = run.Do(ctx, step, func(context.Context) error {
		fmt.Printf("%s: %d bytes\n", step.Key, len(content))
		return replaceFile(to, content)
	})
	return err
}

// replaceFile writes a file as a whole, so that it may be done again.
func replaceFile(path string, content []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
