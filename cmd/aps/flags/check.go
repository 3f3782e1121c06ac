package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// maxNamed bounds the missing commands that an error names.
const maxNamed = 5

// check checks the values of a command line that was applied, in kong's order.
func check(c *kong.Context) error {
	for _, p := range c.Path {
		if err := checkEnums(p.Node()); err != nil {
			return err
		}
	}
	for _, p := range c.Path {
		if err := checkFlags(p.Command); err != nil {
			return err
		}
	}
	for _, p := range c.Path {
		if err := checkRequired(p.Flags); err != nil {
			return err
		}
	}
	selected := c.Selected()
	if selected == nil {
		selected = c.Model.Node
	}
	if err := checkComplete(selected); err != nil {
		return err
	}
	for _, p := range c.Path {
		if err := checkExclusive(p.Flags); err != nil {
			return err
		}
	}
	return nil
}

// checkEnums checks the values of which only some words are good.
func checkEnums(n *kong.Node) error {
	if n == nil {
		return nil
	}
	for _, v := range n.Values() {
		if v.Enum == "" {
			continue
		}
		words, got := v.EnumSlice(), fmt.Sprint(v.Target.Interface())
		if slices.Contains(words, got) {
			continue
		}
		for i, word := range words {
			words[i] = strconv.Quote(word)
		}
		return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.Join(words, ","), got)
	}
	return nil
}

// checkFlags calls the method CheckFlags of a command, if there is one. The name is not Validate, because kong has an
// own method Validate. The linker would keep that one for the sake of an interface with this name.
func checkFlags(n *kong.Node) error {
	if n == nil {
		return nil
	}
	command, ok := n.Target.Addr().Interface().(interface{ CheckFlags() error })
	if !ok {
		return nil
	}
	if err := command.CheckFlags(); err != nil {
		return fmt.Errorf("%s: %w", n.Path(), err)
	}
	return nil
}

func checkRequired(flags []*kong.Flag) error {
	var missing []string
	for _, f := range flags {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
}

// checkComplete checks that arguments and command are all there.
func checkComplete(n *kong.Node) error {
	var arguments, missing []string
	for _, v := range n.Positional {
		if v.Required && !v.Set {
			arguments = append(arguments, v.Summary())
		}
	}
	if len(arguments) > 0 {
		missing = append(missing, strconv.Quote(strings.Join(arguments, " ")))
	}
	for _, child := range n.Children {
		if !child.Hidden {
			missing = append(missing, strconv.Quote(child.Name))
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) == 1:
		return errors.New("expected " + missing[0])
	case len(missing) > maxNamed:
		missing = append(missing[:maxNamed], "...")
	}
	return errors.New("expected one of " + strings.Join(missing, ", "))
}

// checkExclusive checks that of flags that exclude each other one is given at most.
func checkExclusive(flags []*kong.Flag) error {
	seen := make(map[string]*kong.Flag)
	for _, f := range flags {
		if !f.Set {
			continue
		}
		for _, group := range f.Xor {
			if other := seen[group]; other != nil {
				return fmt.Errorf("--%s and --%s can't be used together", other.Name, f.Name)
			}
			seen[group] = f
		}
	}
	return nil
}
