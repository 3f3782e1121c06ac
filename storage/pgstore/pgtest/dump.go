package pgtest

import (
	"fmt"
	"strings"
)

// Dump returns all that is in the database as statements for Load, from pg_dump.
func (s *Server) Dump() (statements []byte, err error) {
	statements, err = s.programs.command("pg_dump", "--no-owner", "--dbname", s.connection()).Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w", err)
	}
	return statements, nil
}

// Load runs the statements of Dump in an empty database.
func (s *Server) Load(statements []byte) error {
	c := s.programs.command("psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", s.connection())
	c.Stdin = strings.NewReader(string(statements))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

// connection returns the address for PostgreSQL's own programs.
func (s *Server) connection() string { return "host=" + s.dir + " user=postgres dbname=postgres" }
