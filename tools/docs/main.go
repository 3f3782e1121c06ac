// Command docs builds a static site from the Markdown documents of the repository:
//
//	cd tools/docs && go run . -root ../.. -out ../../bin/docs
//
// The site needs no server and makes no request to another host: its pages, its style and its search index are files that a
// browser opens from the file system. Headings have the same fragments as on GitHub, so each link works in both places.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "../..", "path of the repository")
	out := flag.String("out", "../../bin/docs", "folder of the site; its old content is removed")
	flag.Parse()
	pages, err := build(*root, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", pages, *out)
}
