// Package commandline contains what the command lines of agentledger and aps share: flags on either side of the command,
// --version, completion in shells, the forms of values, and what is shown on a terminal only.
//
// It hides from both programs how the parser (kong) is set up, and how a terminal is recognized.
//
// Invariants:
//
//   - A flag means the same before and after the command that it belongs to.
//   - A rejected value is reported with the name of its flag or argument and with the expected form.
//   - Headers, colours and progress bars appear on a terminal and nowhere else. Output to a file or a pipe never depends on them.
package commandline

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// Common contains the flags and commands that both programs have.
type Common struct {
	Completion CompletionCommand `cmd:"" help:"Print the script that completes commands, flags and values in a shell."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what may follow on a command line, for the scripts of completion."`
}

// Parse parses the arguments of a program, without its name. The program must have a command version, and the options Forms.
func Parse(k *kong.Kong, args []string) (*kong.Context, error) {
	parsed, err := k.Parse(flagsLast(k.Model.Node, args))
	if err != nil {
		return parsed, &UsageError{err}
	}
	return parsed, nil
}

// UsageError is an error of the command line.
type UsageError struct{ err error }

// fromVariable is the end of an error about the value of an environment variable, with the value: kong's own words after
// ours, if the value was rejected here, and the reason, if there is one.
var fromVariable = regexp.MustCompile(`(?s)(?:, got ".*"(: [^"]*)?)? \(from envar ([A-Za-z0-9_]+)=".*"\)`)

// argument is how kong names an argument that may be left out or repeated: [<file>] or <file> ...
var argument = regexp.MustCompile(`^\[?(<[a-z-]+>)(?: \.\.\.)?\]?:`)

// Error returns the error without the value of an environment variable, which may be a secret.
func (e *UsageError) Error() string {
	text := argument.ReplaceAllString(e.err.Error(), "$1:")
	return fromVariable.ReplaceAllString(text, "$1 (from the environment variable $2)")
}

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// versionFlag in front of the command has the meaning of the command version. It is no flag of the parser, because commands
// have a flag of that name.
const versionFlag = "--version"

// flagsLast moves the flags of a command that are in front of it behind it, where kong expects them. Arguments that it does
// not understand are left to kong.
func flagsLast(root *kong.Node, args []string) []string {
	var path, moved []string
	node, i := root, 0
	for i < len(args) && len(node.Children) > 0 {
		name := args[i]
		if name == versionFlag && node == root {
			name = strings.TrimPrefix(versionFlag, "--")
		}
		if !isFlag(name) {
			child := childNamed(node, name)
			if child == nil {
				break
			}
			node, path, i = child, append(path, name), i+1
			continue
		}
		flag, own := findFlag(node, args[i])
		if flag == nil {
			break
		}
		end := i + 1
		if takesNext(flag, args[i]) {
			end = min(end+1, len(args))
		}
		if own {
			path = append(path, args[i:end]...)
		} else {
			moved = append(moved, args[i:end]...)
		}
		i = end
	}
	return append(append(path, moved...), args[i:]...)
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' && arg != "--" }

// childNamed returns the command with a name below a node, or nil.
func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && child.Name == name {
			return child
		}
	}
	return nil
}

// findFlag returns the flag that an argument such as --url, --url=X or -q names, or nil. own reports whether kong knows it at
// the node; otherwise it is the flag of a command below.
func findFlag(node *kong.Node, arg string) (flag *kong.Flag, own bool) {
	for _, group := range flagsNode(node).AllFlags(false) {
		for _, f := range group {
			if names(f, arg) {
				return f, true
			}
		}
	}
	for _, child := range node.Children {
		for _, f := range child.Flags {
			if names(f, arg) {
				return f, false
			}
		}
		if f, _ := findFlag(child, arg); f != nil {
			return f, false
		}
	}
	return nil, false
}

// flagsNode returns the node whose flags kong accepts at a node: the default command, which may be left out, or the node itself.
func flagsNode(node *kong.Node) *kong.Node {
	if node.DefaultCmd != nil && node.DefaultCmd.Tag.Default == "withargs" {
		return node.DefaultCmd
	}
	return node
}

func names(f *kong.Flag, arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "--"+f.Name || f.Short != 0 && arg == "-"+string(f.Short)
}

// takesNext reports whether the argument after a flag is its value.
func takesNext(f *kong.Flag, arg string) bool {
	return !f.IsBool() && !f.IsCounter() && !strings.Contains(arg, "=")
}
