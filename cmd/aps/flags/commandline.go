package flags

import (
	"github.com/alecthomas/kong"
)

// Error is an error of usage.
type Error struct{ err error }

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Parse does the work of kong's own Parse by the parts of kong that call no method by its name. kong's Parse, Validate and
// Run look methods up by names that the linker doesn't know, so the linker would keep every exported method of every type
// in use, a seventh of the program. A command line is accepted or refused as kong's Parse does, with the same words. Hooks
// such as AfterApply and Validate are not called; a command's method CheckFlags() error is called in place of Validate.
//
// Parse sets the fields of the parser's commands. It returns a pointer to the selected command, or nil after the help
// was written, which --help asks for. The error is an *Error.
func Parse(k *kong.Kong, args []string) (any, error) {
	c, err := kong.Trace(k, args)
	if err == nil {
		err = c.Error
	}
	if err != nil {
		return nil, &Error{err}
	}
	if asksForHelp(c) {
		return nil, c.PrintUsage(false)
	}
	if err := apply(c); err != nil {
		return nil, &Error{err}
	}
	return c.Selected().Target.Addr().Interface(), nil
}

func asksForHelp(c *kong.Context) bool {
	for _, p := range c.Path {
		if p.Flag != nil && p.Flag == c.Model.HelpFlag {
			return true
		}
	}
	return false
}

// apply sets the fields: defaults, then the environment, then the arguments.
func apply(c *kong.Context) error {
	if err := c.Reset(); err != nil {
		return err
	}
	if err := c.Resolve(); err != nil {
		return err
	}
	if _, err := c.Apply(); err != nil {
		return err
	}
	return check(c)
}
