package page

// Live says when a page is read again by its script (live.js). The template "live" shows it. A page without one stays
// as it is. The parts of the page that are kept up to date have an id and the attribute data-live. With the value top
// they stay while a reader has scrolled past their begin.
type Live struct {
	Follow string // the address of a list of events of the interface, with its parameters; "" for none
	After  string // the last event that the page knows, "" for none
	Every  int    // seconds until the page is read again, 0 for never
	News   string // what a screen reader says after a change
}

// LiveScript is the script of a page that shows a Live, and LiveModules are the modules that it imports.
const LiveScript = "livepage.js"

// LiveModules returns the modules of LiveScript.
func LiveModules() []string { return []string{LiveScript, "live.js", "times.js"} }
