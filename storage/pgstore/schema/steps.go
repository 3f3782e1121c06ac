package schema

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// source contains the steps that a program knows, and the tables that they create.
type source struct {
	files fs.FS  // the steps, as goose reads them
	text  string // of the tables, formatted by formatSchema
}

// Step is one change of the schema.
type Step struct {
	Version int64 // of the schema after the step
	Lowest  int64 // oldest schema that a program must know to write after the step
}

// lowestLine matches the line of a step that contains Lowest.
var lowestLine = regexp.MustCompile(`(?m)^-- Lowest: (\d+)$`)

// steps returns all steps in order.
func (s source) steps() ([]Step, error) {
	names, err := fs.Glob(s.files, "*.sql") // in the order of the names
	if err != nil {
		return nil, fmt.Errorf("read the steps of the schema: %w", err)
	}
	all := make([]Step, 0, len(names))
	lowest := int64(0)
	for _, name := range names {
		step, err := s.readStep(name)
		if err != nil {
			return nil, fmt.Errorf("read the step %s of the schema: %w", name, err)
		}
		if step.Version != int64(len(all)+1) || step.Lowest < lowest || step.Lowest > step.Version {
			return nil, fmt.Errorf("the step %s of the schema is out of order", name)
		}
		lowest = step.Lowest
		all = append(all, step)
	}
	return all, nil
}

func (s source) readStep(name string) (step Step, err error) {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return step, err
	}
	if _, err := fmt.Sscanf(path.Base(name), "%05d_", &step.Version); err != nil {
		return step, fmt.Errorf("its number: %w", err)
	}
	line := lowestLine.FindSubmatch(text)
	if line == nil {
		return step, fmt.Errorf("it has no line -- Lowest: NUMBER")
	}
	step.Lowest, err = strconv.ParseInt(string(line[1]), 10, 64)
	return step, err
}
