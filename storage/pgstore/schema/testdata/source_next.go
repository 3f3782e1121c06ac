package schema

import (
	"embed"
	"io/fs"
	"os"
	"strconv"

	"github.com/agentledger/agentledger/storage/pgstore/schema/upgradetest"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed schema.txt
var schemaText string

// released replaces the function in source.go when the program for tests of upgrades is built. It returns the released
// steps, followed by as many steps of versions that do not exist as the environment variable NEXT_STEPS_OF_TESTS says.
func released() (source, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return source{}, err
	}
	steps, err := source{files: files}.steps()
	if err != nil {
		return source{}, err
	}
	count, err := strconv.Atoi(os.Getenv("NEXT_STEPS_OF_TESTS"))
	if err != nil {
		return source{}, err
	}
	last := steps[len(steps)-1]
	next := []upgradetest.Step{upgradetest.Expanding(), upgradetest.Contracting()}
	files, text, err := upgradetest.Extend(files, schemaText, last.Version, last.Lowest, next[:count]...)
	return source{files: files, text: text}, err
}
