package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/durable"
)

// refusedLine is a line of the file of refused events, which `aps send` reads.
type refusedLine struct {
	Status  int            `json:"status"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Event   jsontext.Value `json:"event"`
}

// refusedFile returns the path of the file of refused events.
func (j *Journal) refusedFile() string {
	return cmp.Or(j.options.RefusedFile, filepath.Join(j.dir, "refused.ndjson"))
}

// keepRefused durably appends an event to the file of refused events. Several processes may append to
// one file. After a crash the event may be in it twice.
func (j *Journal) keepRefused(envelope []byte, why error) error {
	line := refusedLine{Message: why.Error(), Event: envelope}
	if answer, ok := errors.AsType[*client.Error](why); ok {
		line.Status, line.Code, line.Message = answer.Status, answer.Code, answer.Message
	}
	text, err := json.Marshal(line)
	if err == nil {
		err = appendDurably(j.refusedFile(), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep refused event: %w", err)
	}
	return nil
}

// appendDurably appends bytes to a file, which it creates if necessary. If it fails, it removes what it
// has appended, so that the next line is not appended to a part of this one.
func appendDurably(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(appendOrTruncate(f, text), f.Close()); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

func appendOrTruncate(f *os.File, text []byte) error {
	before, err := f.Stat()
	if err != nil {
		return err
	}
	n, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	after, statErr := f.Stat()
	if statErr != nil || after.Size() != before.Size()+int64(n) { // another process has appended
		return errors.Join(err, statErr)
	}
	return errors.Join(err, f.Truncate(before.Size()))
}
