// Housecount prints how the tree in the working folder reads: folders and edges, lines,
// names, prose and how often each shared mechanism is implemented. With -packages it
// prints a line for each package.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

func main() {
	packages := flag.Bool("packages", false, "print a line for each package")
	root := flag.String("root", ".", "the folder of the repository")
	flag.Parse()
	if err := printCounts(os.Stdout, *root, *packages); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printCounts(w io.Writer, root string, packages bool) error {
	tree, err := houserules.ReadTree(root)
	if err != nil {
		return err
	}
	folders, err := tree.TopFolders()
	if err != nil {
		return err
	}
	lines, names, comments := tree.PackageLines(), tree.FunctionNames(), tree.Comments()
	if packages {
		printPackages(w, lines, names, comments)
	}
	var all int
	var allNames houserules.Names
	var prose houserules.Prose
	for name := range lines {
		all += lines[name]
		allNames = allNames.Plus(names[name])
		prose = prose.Plus(comments[name])
	}
	row := func(name string, value any) { fmt.Fprintf(w, "%-46s %v\n", name, value) }
	row("top-level folders", len(folders))
	row("packages", len(lines))
	row("edges between top-level folders", len(tree.Edges()))
	row("lines that are not tests", all)
	row("functions and methods", allNames.Functions)
	row("letters of a function's name, mean", fmt.Sprintf("%.2f", allNames.Mean()))
	row("functions called add", tree.FunctionsNamed("add"))
	row("words in comments", prose.Words)
	row("\"what\" as a noun, per 1,000 words", fmt.Sprintf("%.2f", prose.Rate(prose.Nominal)))
	row("\"of it\", \"of them\", per 1,000 words", fmt.Sprintf("%.2f", prose.Rate(prose.Partitive)))
	row("\"whoever\", \"nobody\", per 1,000 words", fmt.Sprintf("%.2f", prose.Rate(prose.Anonymous)))
	row("sentences of more than 25 words, of 1,000",
		fmt.Sprintf("%.0f", 1000*float64(prose.Long)/float64(max(1, prose.Sentences))))
	row("\"for example\"", prose.Examples)
	for _, m := range houserules.Mechanisms() {
		places := tree.Places(m)
		row("places of "+m.Name, fmt.Sprint(len(places), " ", places))
	}
	return nil
}

func printPackages(
	w io.Writer, lines map[string]int, names map[string]houserules.Names, comments map[string]houserules.Prose,
) {
	fmt.Fprintf(w, "%-40s %6s %6s %6s %6s %6s %6s %6s\n", "package", "lines", "names", "words", "what", "of it",
		"whoever", "long")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		p := comments[name]
		fmt.Fprintf(w, "%-40s %6d %6.2f %6d %6.2f %6.2f %6.2f %6d\n", name, lines[name], names[name].Mean(),
			p.Words, p.Rate(p.Nominal), p.Rate(p.Partitive), p.Rate(p.Anonymous), p.Long)
	}
}
