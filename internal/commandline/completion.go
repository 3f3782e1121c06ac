package commandline

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCommand is the command completion.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts of the shells call "PROGRAM complete", so that one function decides what may follow.
var (
	//go:embed scripts/bash
	bashScript string
	//go:embed scripts/zsh
	zshScript string
	//go:embed scripts/fish
	fishScript string
)

// Help implements kong.HelpProvider.
func (CompletionCommand) Help() string {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return fmt.Sprintf("In ~/.bashrc: source <(%[1]s completion bash). In ~/.zshrc: source <(%[1]s completion zsh). "+
		"In ~/.config/fish/config.fish: %[1]s completion fish | source.", name)
}

// Run prints the script.
func (c CompletionCommand) Run(parsed *kong.Context) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := io.WriteString(parsed.Stdout, strings.ReplaceAll(script, "PROGRAM", parsed.Model.Name))
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after the program's name, up to the one to complete."`
}

// Run prints the kind of the completions on the first line, and then one completion on each line, with its description after
// a tab.
func (c completeCommand) Run(parsed *kong.Context) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	kind, found := complete(parsed.Model.Node, words)
	lines := []string{string(kind)}
	for _, f := range found {
		help, _, _ := strings.Cut(f.help, "\n")
		lines = append(lines, f.word+"\t"+help)
	}
	_, err := fmt.Fprintln(parsed.Stdout, strings.Join(lines, "\n"))
	return err
}

// kind is what completes a word.
type kind string

const (
	anyWords kind = "words"   // the listed words, if any
	files    kind = "files"   // names of files
	folders  kind = "folders" // names of folders
)

// completion is a word that may follow.
type completion struct{ word, help string }

// complete returns what may take the place of the last word.
func complete(root *kong.Node, words []string) (kind, []completion) {
	if len(words) == 0 {
		words = []string{""}
	}
	words, last := joinValues(words[:len(words)-1]), words[len(words)-1]
	node, positional := root, 0
	given := map[string]bool{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			return files, nil
		}
		if flag, _ := findFlag(node, word); isFlag(word) && flag != nil {
			given[flag.Name] = true
			if name, bare := strings.CutSuffix(word, "="); bare && i == len(words)-1 && name == "--"+flag.Name {
				return completeValue(flag.Value, flag.PlaceHolder, "", last) // bash splits words at =
			}
			if !takesNext(flag, word) {
				continue
			}
			if i++; i == len(words) {
				if last == "=" {
					last = ""
				}
				return completeValue(flag.Value, flag.PlaceHolder, "", last)
			}
			continue
		}
		if child := childNamed(node, word); child != nil && positional == 0 {
			node = child
			continue
		}
		positional++
	}
	if name, value, inValue := strings.Cut(last, "="); inValue && isFlag(last) {
		if flag, _ := findFlag(node, name); flag != nil {
			return completeValue(flag.Value, flag.PlaceHolder, name+"=", value)
		}
	}
	if strings.HasPrefix(last, "-") {
		found := completeFlag(node, given, last)
		if node == root && strings.HasPrefix(versionFlag, last) {
			found = append(found, completion{versionFlag, childNamed(root, "version").Help})
		}
		return anyWords, found
	}
	return completeArgument(node, positional, last)
}

// joinValues joins --flag, = and value, into which bash splits a word, to one word.
func joinValues(words []string) (joined []string) {
	for i, word := range words {
		n := len(joined)
		switch {
		case word == "=" && n > 0 && strings.HasPrefix(joined[n-1], "--"):
			joined[n-1] += "="
		case i > 0 && words[i-1] == "=" && n > 0 && strings.HasSuffix(joined[n-1], "="):
			joined[n-1] += word
		default:
			joined = append(joined, word)
		}
	}
	return joined
}

func completeFlag(node *kong.Node, given map[string]bool, prefix string) (found []completion) {
	for _, group := range flagsNode(node).AllFlags(true) {
		for _, f := range group {
			word := "--" + f.Name
			if !f.Hidden && strings.HasPrefix(word, prefix) && (!given[f.Name] || f.IsCumulative()) {
				found = append(found, completion{word, f.Help})
			}
		}
	}
	return found
}

// completeArgument completes a command or an argument.
func completeArgument(node *kong.Node, positional int, prefix string) (kind, []completion) {
	var found []completion
	if positional == 0 {
		for _, child := range node.Children {
			if child.Type == kong.CommandNode && !child.Hidden && strings.HasPrefix(child.Name, prefix) {
				found = append(found, completion{child.Name, child.Help})
			}
		}
	}
	arguments := flagsNode(node).Positional
	if len(found) > 0 || len(arguments) == 0 {
		return anyWords, found
	}
	if positional >= len(arguments) {
		if positional = len(arguments) - 1; !arguments[positional].IsCumulative() {
			return anyWords, nil
		}
	}
	return completeValue(arguments[positional], arguments[positional].Tag.PlaceHolder, "", prefix)
}

// completeValue completes the value of a flag or an argument. front is the part of the word in front of the value.
func completeValue(v *kong.Value, placeholder, front, prefix string) (kind, []completion) {
	var found []completion
	for _, word := range v.EnumSlice() {
		if word != "" && strings.HasPrefix(word, prefix) {
			found = append(found, completion{front + word, ""})
		}
	}
	switch {
	case v.Enum != "":
	case placeholder == "DIR" || v.Tag.Type == "existingdir":
		return folders, nil
	case slices.Contains([]string{"input", "file", "output", "path", "existing", "existingfile"}, v.Tag.Type), v.Tag.Get("complete") == "files",
		strings.Contains(placeholder, "FILE"), v.Passthrough:
		return files, nil
	}
	return anyWords, found
}
