package chromium

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Display describes how pages are shown.
type Display struct {
	Scheme string // light or dark
	Width  int    // width of the window in CSS pixels
}

// Displays returns the displays that every page must fit: light on a phone, dark on a desktop, and light on a desktop of
// 1,280 pixels at 200 % zoom. If the test keeps pictures, it also returns the other combinations.
func Displays() []Display {
	all := []Display{{"light", 360}, {"dark", 1280}, {"light", 640}, {"light", 1280}, {"dark", 360}}
	if !keepsPictures() {
		return all[:3]
	}
	return all
}

// keepsPictures reports whether the test was started with -artifacts.
func keepsPictures() bool {
	f := flag.Lookup("test.artifacts")
	return f != nil && f.Value.String() == "true"
}

// Name returns the display as part of a file name.
func (d Display) Name() string { return fmt.Sprintf("%s-%d", d.Scheme, d.Width) }

// SetDisplay shows the current page and all later ones in a display.
func (b *Browser) SetDisplay(d Display) {
	b.t.Helper()
	b.Emulate("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": d.Scheme}}})
	b.Emulate("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": d.Width, "height": 800, "deviceScaleFactor": 1, "mobile": false})
}

// Axe returns the source of axe-core from a directory in which npm has installed it.
func Axe(t testing.TB, folder string) string {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(folder, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(axe)
}

// WantAccessible unfolds all parts of the current page and runs axe-core in it, once for each display. It fails the
// test for each violation that axe-core finds, if the page is wider than its window, and if it has the colors of the
// other scheme. It stores a picture of each display (KeepPicture).
func (b *Browser) WantAccessible(axe, what string) {
	b.t.Helper()
	for i, d := range Displays() {
		b.SetDisplay(d)
		script := ""
		if i == 0 {
			script = axe
		}
		b.wantAccessible(script, d, what)
		b.KeepPicture(what + "-" + d.Name())
	}
}

func (b *Browser) wantAccessible(axe string, d Display, what string) {
	b.t.Helper()
	var got struct {
		Rules int
		Wide  bool
		Dark  bool
		Wrong []string
		Looks []string
	}
	if err := b.Run(axe+checkAccess, &got, d.Width, b.looks); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	b.looks = append(b.looks, got.Looks...)
	if len(got.Wrong) > 0 || got.Rules < 10 || got.Wide || got.Dark != (d.Scheme == "dark") {
		b.t.Errorf("%s %s: %d rules passed, wider than the window: %v, dark: %v, wrong: %s", what, d.Name(), got.Rules,
			got.Wide, got.Dark, strings.Join(got.Wrong, "; "))
	}
}

// checkAccess checks the page that is open. args are the width of the window and the looks whose contrast was checked
// before. Contrast takes axe-core most of its time and depends only on an element's look: its color, its font, and the
// backgrounds behind it. So each look is checked once, at the elements that are the first to have it.
const checkAccess = `
	const [width, known] = args;
	const page = document.getElementById("checked");
	while (page && page.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
	while (innerWidth !== width) await new Promise((next) => setTimeout(next, 5)); // until the display is set
	for (const details of document.querySelectorAll("details")) details.open = true;

	const lookOf = (element) => {
		const style = getComputedStyle(element);
		const look = [style.color, style.fontSize, style.fontWeight, style.textShadow];
		for (let e = element; e; e = e.parentElement) {
			const {backgroundColor, backgroundImage, opacity} = getComputedStyle(e);
			look.push(backgroundColor, backgroundImage, opacity);
			if (backgroundImage === "none" && opacity === "1" && backgroundColor.startsWith("rgb(")) break;
		}
		return look.join("|");
	};
	const hasText = (element) => element.matches("input, select, textarea")
		|| [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
	const looks = new Set(known), added = [], first = [];
	for (const element of document.body.querySelectorAll("*")) {
		if (!hasText(element) || !element.checkVisibility()) continue;
		const look = lookOf(element);
		if (looks.has(look)) continue;
		looks.add(look);
		added.push(look);
		first.push(element);
	}

	const contrast = "color-contrast";
	const results = [await axe.run(document, {resultTypes: ["violations"], rules: {[contrast]: {enabled: false}}})];
	if (first.length > 0) {
		results.push(await axe.run({include: first}, {resultTypes: ["violations"], runOnly: [contrast]}));
	}
	return {
		rules: results[0].passes.length, wide: document.documentElement.scrollWidth > innerWidth,
		dark: matchMedia("(prefers-color-scheme: dark)").matches, looks: added,
		wrong: results.flatMap((r) => r.violations).flatMap((v) => v.nodes.map((n) => v.id + " " + n.target)),
	};`

// KeepPictures stores a picture of the whole page that is open in each display, if go test -artifacts keeps them.
func (b *Browser) KeepPictures(name string) {
	b.t.Helper()
	if !keepsPictures() {
		return
	}
	for _, d := range Displays() {
		b.SetDisplay(d)
		b.KeepPicture(name + "-" + d.Name())
	}
}

// KeepPicture stores a picture of the whole page that is open: go test -artifacts -outputdir keeps it.
func (b *Browser) KeepPicture(name string) {
	b.t.Helper()
	if !keepsPictures() {
		return
	}
	file := strings.Trim(strings.ReplaceAll(name, "/", "-"), "-") + ".png"
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), file), b.Picture(true), 0o600); err != nil {
		b.t.Fatal(err)
	}
}
