package page

// Live configures how the page's script (live.js) keeps the page up to date. The template "live" renders it. A page
// without one is not updated. The updated parts of the page have an id and the attribute data-live. With the value top
// they are not updated while the reader has scrolled past their beginning.
type Live struct {
	Follow string // address of a list of events of the interface, with its parameters; "" if none
	After  string // the last event that the page shows; "" if none
	Every  int    // interval in seconds between updates; 0 for no updates
	News   string // what a screen reader announces after a change
}

// LiveScript is the script of a page that renders a Live.
const LiveScript = "livepage.js"

// LiveModules returns the modules of LiveScript.
func LiveModules() []string { return []string{LiveScript, "live.js", "times.js"} }
