package pgtest

import (
	"fmt"
	"strings"
)

// Dump returns the whole database as statements for Load, from pg_dump.
func (s *Server) Dump() (statements []byte, err error) {
	statements, err = s.programs.command("pg_dump", "--no-owner", "--dbname", s.connection()).Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w", err)
	}
	return statements, nil
}

// template is the name of the schema that NewSchema copies. A dump contains this text only as that name.
const template = "template_of_tests"

// NewSchema creates a schema with the tables that fill creates in an empty one, and returns its URL. fill is called with
// the URL of an empty schema, once per server: copying its tables takes a quarter of the time of pgstore.Open in an
// empty schema.
func (s *Server) NewSchema(fill func(url string) error) (url string, err error) {
	s.schemas.Lock()
	defer s.schemas.Unlock()
	if s.schemas.text == "" {
		if err := s.dumpTemplate(fill); err != nil {
			return "", err
		}
	}
	s.schemas.made++
	name := fmt.Sprint("copy_", s.schemas.made)
	return s.URL("search_path=" + name), s.Exec(strings.ReplaceAll(s.schemas.text, template, name))
}

// dumpTemplate fills the template and stores the statements that create it.
func (s *Server) dumpTemplate(fill func(url string) error) error {
	if err := s.Exec("CREATE SCHEMA " + template); err != nil {
		return err
	}
	if err := fill(s.URL("search_path=" + template)); err != nil {
		return err
	}
	dump, err := s.programs.command("pg_dump", "--no-owner", "--no-comments", "--inserts", "--schema="+template,
		"--dbname", s.connection()).Output()
	if err != nil {
		return fmt.Errorf("pg_dump: %w", err)
	}
	for line := range strings.Lines(string(dump)) {
		if !strings.HasPrefix(line, `\`) && !strings.HasPrefix(line, "--") { // commands of psql, comments
			s.schemas.text += line
		}
	}
	return nil
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
